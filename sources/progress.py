"""What a person sees of long work: bars on stderr where it is a terminal, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sources.download import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import ProgressColumn


@contextmanager
def download_bars() -> Iterator[Progress]:
    """Yield what a download tells its state to; a bar a file, gone once the file is whole."""
    from rich.progress import DownloadColumn, TransferSpeedColumn

    tasks = {}
    with _bars(DownloadColumn(), TransferSpeedColumn()) as bars:

        def note(file: str, done_bytes: int, total_bytes: int | None) -> None:
            if file not in tasks:
                tasks[file] = bars.add_task(file, total=total_bytes)
            whole = done_bytes == total_bytes
            bars.update(tasks[file], completed=done_bytes, total=total_bytes, visible=not whole)

        yield note


@contextmanager
def work_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield what is told how many more of `total` pieces are done; a bar with the time that is left."""
    from rich.progress import MofNCompleteColumn, TimeRemainingColumn

    with _bars(MofNCompleteColumn(), TimeRemainingColumn()) as bars:
        task = bars.add_task(what, total=total)
        yield lambda done: bars.advance(task, done)


@contextmanager
def _bars(*columns: ProgressColumn) -> Iterator[Bars]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    named = (TextColumn("{task.description}", markup=False), BarColumn(), *columns)
    with Bars(*named, console=console, disable=not console.is_terminal, transient=True) as bars:
        yield bars

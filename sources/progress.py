"""What a person sees of long work: bars on stderr where it is a terminal, nothing elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sources.download import Progress


@contextmanager
def download_bars() -> Iterator[Progress]:
    """Yield what a download tells its state to; a bar a file, gone once the file is whole."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    tasks = {}
    with Bars(*columns, console=console, disable=not console.is_terminal, transient=True) as bars:

        def note(file: str, done_bytes: int, total_bytes: int | None) -> None:
            if file not in tasks:
                tasks[file] = bars.add_task(file, total=total_bytes)
            whole = done_bytes == total_bytes
            bars.update(tasks[file], completed=done_bytes, total=total_bytes, visible=not whole)

        yield note


@contextmanager
def work_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Yield what is told how many more of `total` pieces are done; a bar with the time that is left."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console, disable=not console.is_terminal, transient=True) as bars:
        task = bars.add_task(what, total=total)
        yield lambda done: bars.advance(task, done)

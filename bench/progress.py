"""Progress in place, on stderr; in the coordinator only, never in a worker."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


@contextmanager
def shown_progress(name: str) -> Generator[Callable[[int, int, int], None]]:
    """Yield what is told how many conversations ended, failed and there are; it draws where there is a terminal."""
    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[failed]}"))
    console = Console(stderr=True)
    with Progress(
        *columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(name, total=None, failed="")

        def tell(ended: int, failed: int, total: int) -> None:
            bar.update(task, completed=ended, total=total, failed=f"{failed} failed" if failed else "")

        yield tell

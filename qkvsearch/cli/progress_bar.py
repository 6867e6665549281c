"""The progress of a long command, as a bar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from qkvsearch.terminal import in_one_line

if TYPE_CHECKING:
    from qkvsearch._utils.callbacks import Progress


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show a progress bar on stderr, a terminal."""
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeRemainingColumn(compact=True),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, int] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bar.add_task(in_one_line(stage.capitalize()), total=total)
            bar.update(tasks[stage], completed=done, total=total)  # type: ignore[arg-type]

        yield report

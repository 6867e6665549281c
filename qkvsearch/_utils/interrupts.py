"""Ctrl-C in a library that discards the exception of the handler, or takes it for its own."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


def _nothing() -> None:
    pass


@contextmanager
def held_interrupts(came: Callable[[], None] = _nothing) -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back during a block that is inside a library.

    Yields a function that calls the handler of the process for what is held back, so that it raises
    `KeyboardInterrupt`, or what else it does. The end of the block calls it too. came: called when
    Ctrl-C is pressed, to end the block soon. Signals reach only the main thread, and in others
    nothing is held back.
    """
    handler: Any = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield _nothing
        return
    held: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append((number, frame))
        came()

    def deliver() -> None:
        if held:
            last = held[-1]
            held.clear()
            handler(*last)

    signal.signal(signal.SIGINT, hold)
    try:
        yield deliver
    finally:
        signal.signal(signal.SIGINT, handler)
        deliver()

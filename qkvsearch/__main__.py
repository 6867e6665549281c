"""The process of a command: `qkvsearch`, and `python -m qkvsearch`.

Little is imported here, so that Ctrl-C is handled before anything slow begins.
"""

import _signal as signal  # type: ignore[import-not-found]  # `signal` imports `enum` first
import os
import sys

STOPPED = 130
# The streams of a process, with how /dev/null is opened in the place of a closed one. A closed
# stdout can only be read: to write results there is an error, as on a full disk, whereas messages
# on a closed stderr are lost.
STREAMS = (
    ("stdin", os.O_RDONLY, "r"),
    ("stdout", os.O_RDONLY, "w"),
    ("stderr", os.O_WRONLY, "w"),
)
# The garbage collector's thresholds. Most objects of a command last to its end, modules above all.
# By Python's own thresholds a tenth of a build goes into looking at them again and again.
THRESHOLDS = 50_000, 20, 100


class Interrupts:
    """Ctrl-C while a command runs: it raises `KeyboardInterrupt`, and is remembered, since a
    library that is being imported may turn that into an error of its own.
    """

    came = False

    def handle(self, *_: object) -> None:
        self.came = True
        raise KeyboardInterrupt


def process() -> None:
    """Run the command line, then end without taking modules and objects apart, which takes a tenth
    of a build. What is to be done at exit is done.
    """
    signal.signal(signal.SIGINT, _stop)
    _open_missing_streams()
    # Python processes that this one starts import nothing from the current folder.
    os.environ["PYTHONSAFEPATH"] = "1"

    import atexit
    import gc
    import threading

    from qkvsearch.cli import main

    gc.set_threshold(*THRESHOLDS)
    interrupts = Interrupts()
    signal.signal(signal.SIGINT, interrupts.handle)
    sys.unraisablehook = _unraisable
    try:
        main()
    except SystemExit as end:
        signal.signal(signal.SIGINT, _stop)
        if interrupts.came and end.code:
            end.code = STOPPED
        if threading.active_count() > 1 or not isinstance(end.code, int):
            raise
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):  # Python says what became of it
            raise end from None
        os._exit(end.code)
    except BaseException:
        if not interrupts.came:
            raise
        _stop()


def _open_missing_streams() -> None:
    """Open /dev/null for each stream that was closed when the process began. Otherwise Python has
    None in its place, and the next file that is opened gets its number.
    """
    for name, flags, mode in STREAMS:
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, flags)  # the lowest free number, which is its own
            os.set_inheritable(descriptor, True)
            stream = open(descriptor, mode, encoding="utf-8")  # noqa: SIM115  # until the end
            setattr(sys, name, stream)


def _unraisable(error: "sys.UnraisableHookArgs") -> None:
    """Ctrl-C in code that has no caller to tell, as that of the garbage collector."""
    if error.exc_type is KeyboardInterrupt:
        _stop()
    sys.__unraisablehook__(error)


def _stop(*_: object) -> None:
    """End at once: nothing has begun, or all is done, or no caller could handle it."""
    try:
        os.write(2, b"Stopped.\n")
    finally:
        os._exit(STOPPED)


if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder
    process()

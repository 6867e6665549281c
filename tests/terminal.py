"""Commands on a pseudo-terminal."""

import os
import subprocess


def on_a_terminal(command, *streams, typed="", **environment):
    """Run a command with these streams on a terminal of 80 columns: its exit code, and what the
    terminal shows. The other streams lead nowhere.
    """
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    places = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    places |= dict.fromkeys(streams, theirs)
    env = {**os.environ, "PYTHONUTF8": "1", "TERM": "xterm-256color", **environment}
    process = subprocess.Popen(command, env=env, **places)
    os.close(theirs)
    os.write(ours, typed.encode())
    pieces = []
    try:
        while piece := os.read(ours, 1 << 16):
            pieces.append(piece)
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(ours)
    return process.wait(), b"".join(pieces).decode("utf-8").replace("\r\n", "\n")

"""Commands on a pseudo-terminal, and what it shows in the end."""

import os
import re
import subprocess
from dataclasses import dataclass, field

# A control sequence: its parameters, and the letter that says what it does.
SEQUENCE = re.compile(r"\x1b\[([\d;?]*)([A-Za-z])")


def on_a_terminal(command, *streams, typed="", columns=80, **environment):
    """Run a command with these streams on a terminal: its exit code, and what is written to the
    terminal. The other streams lead nowhere.
    """
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
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


@dataclass
class Screen:
    """What a terminal shows of a text, with all lines that have scrolled away.

    A line longer than the terminal stays one line, so that a test can find it.

    >>> Screen.of("Saving 50%\\r\\x1b[2KDone\\n").lines
    ['Done', '']
    """

    lines: list[str] = field(default_factory=lambda: [""])
    row: int = 0
    column: int = 0
    has_cursor: bool = True
    # The styles that are on, such as "1" for bold.
    styles: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, text):
        screen = cls()
        start = 0
        for sequence in SEQUENCE.finditer(text):
            screen._write(text[start : sequence.start()])
            screen._obey(*sequence.groups())
            start = sequence.end()
        screen._write(text[start:])
        return screen

    def _write(self, text):
        for sign in text:
            if sign == "\n":
                self.row, self.column = self.row + 1, 0
                if self.row == len(self.lines):
                    self.lines.append("")
            elif sign == "\r":
                self.column = 0
            else:
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + sign + line[self.column + 1 :]
                self.column += 1

    def _obey(self, parameters, letter):
        number = int(parameters) if parameters.isdecimal() else None
        if letter == "m":
            is_reset = parameters in ("", "0")
            self.styles = [] if is_reset else [*self.styles, parameters]
        elif letter == "A":
            self.row = max(0, self.row - (number or 1))
        elif letter == "K":
            self.lines[self.row] = "" if number == 2 else self.lines[self.row][: self.column]
        elif parameters == "?25" and letter in "lh":
            self.has_cursor = letter == "h"
        else:
            self.unknown.append(f"{parameters}{letter}")

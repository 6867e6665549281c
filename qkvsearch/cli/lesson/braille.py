"""A canvas of braille dots: lines and names in a plane, two dots wide and four high a letter."""

from itertools import groupby

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from qkvsearch.terminal import printable

# The bit of each dot of a braille letter, by its row and column. Unicode 15, section 21.1.
BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
EMPTY = 0x2800


class Canvas:
    """columns × rows letters, on which x goes from x0 to x1 and y, upwards, from y0 to y1."""

    def __init__(
        self, columns: int, rows: int, x: tuple[float, float], y: tuple[float, float]
    ) -> None:
        self.dots = np.zeros((rows * 4, columns * 2), dtype=bool)
        self.styles = np.full((rows, columns), "dim", dtype=object)
        self.letters = np.full((rows, columns), "", dtype=object)
        self._x, self._y = x, y

    def line(self, a: np.ndarray, b: np.ndarray, style: str, every: int = 1) -> None:
        """From one place to the other; every: 1 for a whole line, 2 for each second dot."""
        start, end = self._dot(a), self._dot(b)
        n = int(np.abs(end - start).max()) + 1
        for i, j in np.linspace(start, end, n).round().astype(int)[::every]:
            self._set(i, j, style)

    def dot(self, at: np.ndarray, style: str) -> None:
        i, j = self._dot(at)
        self._set(i, j, style)

    def write(self, at: np.ndarray, words: str, style: str) -> None:
        """A name at a place, within the canvas; names that are there already stay."""
        words = printable(words)
        i, j = self._dot(at) // (4, 2)
        wide = cell_len(words)
        j = int(np.clip(j, 0, max(self.letters.shape[1] - wide, 0)))
        # The nearest line that has room.
        for row in (i, i - 1, i + 1, i - 2, i + 2):
            if 0 <= row < len(self.letters) and not self.letters[row, j : j + wide].any():
                break
        else:
            return
        for letter in words:
            if j >= self.letters.shape[1]:
                return
            self.letters[row, j], self.styles[row, j] = letter, style
            # A Chinese character takes the letter after it, too.
            if cell_len(letter) == 2 and j + 1 < self.letters.shape[1]:
                self.letters[row, j + 1] = "\0"
            j += max(cell_len(letter), 1)

    def lines(self) -> list[Text]:
        """The canvas as text, a line a row."""
        return [self._line(row) for row in range(len(self.letters))]

    def _line(self, row: int) -> Text:
        cells = self.dots[4 * row : 4 * row + 4].reshape(4, -1, 2)
        codes = (cells * BITS[:, None]).sum(axis=(0, 2))
        written = [
            (letter or (chr(EMPTY + code) if code else " "), style)
            for letter, code, style in zip(self.letters[row], codes, self.styles[row], strict=True)
        ]
        text = Text()
        for style, pieces in groupby(written, key=lambda piece: piece[1]):
            text.append("".join(letter for letter, _ in pieces).replace("\0", ""), style=style)
        text.rstrip()
        return text

    def _dot(self, at: np.ndarray) -> np.ndarray:
        """Row and column of the dot at a place, or of the nearest on the canvas."""
        high, wide = self.dots.shape
        x = (at[0] - self._x[0]) / (self._x[1] - self._x[0]) * (wide - 1)
        y = (self._y[1] - at[1]) / (self._y[1] - self._y[0]) * (high - 1)
        found = np.nan_to_num([y, x]).round().astype(int)
        return np.clip(found, 0, [high - 1, wide - 1])

    def _set(self, i: int, j: int, style: str) -> None:
        self.dots[i, j] = True
        self.styles[i // 4, j // 2] = style

"""Text files of any encoding as UTF-8."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from encodings.aliases import aliases
from pathlib import Path
from typing import NamedTuple

from qkvsearch._utils.scratch import scratch_file
from qkvsearch.errors import Count, DataError, suggest

BYTE_ORDER_MARKS = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
WINDOWS = "Windows-1252"
# The byte order mark as a character; marks in a text, with what follows them on their line.
MARK = "\ufeff"
MARKED = re.compile(rf"{MARK}+(?=([^\r\n{MARK}]*))")
ASIAN = ("cp932", "euc_jp", "gb18030", "big5", "cp949")
# The encoding is told from about this many bytes around letters beyond ASCII.
SAMPLE, AROUND = 1 << 14, rb"[\x80-\xff]+(?:[\x00-\x7f]{1,30}[\x80-\xff]+){0,9999}[\x00-\x7f]{0,30}"
# Encodings whose disorder (charset-normalizer's, 0 to 1) or share of usual letters differs by no
# more fit equally well; those of more letters and not much more disorder, too. At least half of the
# letters are usual in the right one.
MAX_DISORDER, MAX_DIFFERENCE, MIN_USUAL, MUCH_DISORDER = 0.02, 0.05, 0.5, 0.1
# An encoding is sure with this many letters, or with the least if all are of one language; and any
# but Windows-1252 with times as many letters.
MANY, MIN_DISTINCT, MIN_RATIO = 10, 3, 1.25
# What no word has: a symbol between its letters, a dash that leaves one alone, two scripts.
STRANGE = (
    "(?<=[a-zß-ɏ])(?:[^\\w\\s\\x00-\\x7f’–—…·]|[ªºµ²³¹¼½¾\u3040-\uffff])(?=[a-zß-ɏ])|£(?=[a-z])"
    r"|(?<=[a-z])[‚„¡¿•ˆ˜]|(?<=[a-z]{2})[–—](?=[a-z]\b)|(?<=\b[a-z])[–—](?=[a-z]{2})|\ufffd"
    "|(?<=[a-z])[\u0370-\u0fff]|[\u0370-\u0fff](?=[a-z])"
)
MAX_IN_ASIAN = 0.2  # charset-normalizer takes kana beside Han for disorder
# Letters that were saved as UTF-8, read as Windows-1252 and saved again: CrÃ¨me is Crème. The first
# byte of a letter is then an accented letter, and those behind it are mostly signs. What people
# write stays out: a capital before a sign at the end of a word (MAÇÃ»), and punctuation behind a
# small letter (café…”).
_SECOND = "\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_PUNCTUATION = "\xa0«»‹›‘’“”„…•–—"
_OF_TWO = f"[Â-ÖØ-Þ][{_SECOND}]"
_OF_THREE = f"[à-ï](?![{_PUNCTUATION}]{{2}})[{_SECOND}]{{2}}"
TWICE = re.compile(
    rf"(?<=[a-z]){_OF_TWO}|{_OF_TWO}(?=[a-z])|(?:[Â-Þ][{_SECOND}]){{2,}}|{_OF_THREE}"
)
WORD_END = re.compile(r'[\s,;|"]')
# Where they may begin. To look for one letter takes a twentieth of the time.
MAY_BE_TWICE = re.compile("[Â-Þà-ï]")
JOINED = 10  # lines of UTF-8 for each other line, from which a file counts as joined exports


class DecodedText(NamedTuple):
    """A text. repaired: the lines read as `encoding`. warning: why that may be wrong. n_marks: the
    byte order marks within it that were left out.
    """

    text: io.TextIOBase
    repaired: int = 0
    encoding: str = WINDOWS
    warning: str = ""
    n_marks: int = 0


def open_text(path: Path, start: bytes, encoding: str | None) -> DecodedText:
    """Open a text in the encoding that is named or that fits each line. Raises `DataError`."""
    if encoding := encoding or wide_encoding(start):
        if not _is_encoding(encoding):
            close = suggest(encoding, [*filter(_is_encoding, [*aliases.values(), *aliases])])
            raise DataError(f"no encoding {encoding!r} (`encoding`){close}")
        return _copied(_blocks(path, encoding), encoding)
    has_marks = False
    twice = _TwiceEncoded()
    try:
        for number, block in enumerate(_blocks(path, "utf-8", "strict")):
            has_marks = has_marks or block.find(MARK, 0 if number else 1) >= 0
            twice.look(block)
        if has_marks:
            return _copied(_blocks(path, "utf-8-sig"), "UTF-8", warnings=twice.warnings())
        text = path.open(encoding="utf-8-sig", newline="")
        return DecodedText(text, warning="".join(twice.warnings()))
    except UnicodeDecodeError as error:
        is_torn = error.reason == "unexpected end of data"
    if is_torn and not all(text.isascii() for text in _blocks(path, "utf-8", "ignore")):
        return _copied(_blocks(path, "utf-8"), "UTF-8")
    return _by_line(path)


class _TwiceEncoded:
    """Counts letters that were encoded twice."""

    def __init__(self) -> None:
        self._n = 0
        self._first = ""

    def look(self, text: str) -> None:
        """Count those of a piece of a text."""
        if text.isascii():
            return
        end = 0
        for first in MAY_BE_TWICE.finditer(text):
            found = TWICE.match(text, first.start())
            if found is None or found.start() < end:
                continue
            end = found.end()
            self._n += 1
            if not self._first:
                before = re.split(r"[\s,;|\"]", text[max(0, found.start() - 20) : found.start()])[
                    -1
                ]
                behind = re.split(r"[\s,;|\"]", text[found.end() : found.end() + 20])[0]
                self._first = before + found[0] + behind

    def warnings(self) -> list[str]:
        """Return a warning that says how many there are, if any."""
        if not self._n:
            return []
        doubt = (
            "{n} {n:place looks|places look} as if UTF-8 had been read as Windows-1252 and saved "
            "again, the first in {first!r}: export the file anew as UTF-8"
        )
        return [doubt.format(n=Count(self._n), first=self._first)]


def _is_encoding(name: str) -> bool:
    """Return whether Python reads texts in an encoding of this name here: hex is of bytes."""
    try:
        return bool(io.TextIOWrapper(io.BytesIO(), name))
    except (LookupError, ValueError):
        return False


def _blocks(path: Path, encoding: str, errors: str = "replace") -> Iterator[str]:
    with path.open(encoding=encoding, errors=errors, newline="") as text:
        yield from iter(lambda: text.read(1 << 20), "")


def _by_line(path: Path) -> DecodedText:
    """Read each line as UTF-8, or else in the encoding that fits all other lines."""
    sample, n_utf8, n_others = b"", 0, 0
    for line in _lines(path):
        if _utf8(line) is not None:
            n_utf8 += not line.isascii()
        else:
            n_others += 1
            for piece in re.finditer(AROUND, line) if len(sample) < SAMPLE else ():
                if len(sample) < SAMPLE:
                    sample += line[max(0, piece.start() - 30) : piece.end()][:SAMPLE]
    encoding, is_sure = detect(sample)
    if n_utf8 >= JOINED * n_others:
        encoding, is_sure = WINDOWS, encoding == WINDOWS or not is_sure
    doubt = f"could not tell the encoding; read as {encoding}; `encoding` says which, such as cp850"
    if encoding in ASIAN and n_utf8 < n_others:  # two letters of it may happen to be UTF-8
        texts = _blocks(path, encoding)
    else:
        texts = (_utf8(line) or line.decode(encoding, "replace") for line in _lines(path))
    return _copied(texts, encoding, n_others, warnings=[] if is_sure else [doubt])


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as content:
        for line in content:
            yield from line.splitlines(keepends=True)


def _utf8(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return None


def _copied(
    texts: Iterable[str], encoding: str, repaired: int = 0, warnings: Sequence[str] = ()
) -> DecodedText:
    """Copy a text as UTF-8, and count the characters that could not be read."""
    copy = scratch_file()
    marks = _Marks()
    n_lost = 0
    try:
        for text in marks.left_out(texts):
            n_lost += text.count("\ufffd")
            copy.write(text.encode(errors="replace"))
    except UnicodeError as error:
        raise DataError(f"the file cannot be read as {encoding} (`encoding`): {error}") from None
    copy.seek(0)
    if n_lost:
        lost = "{n} {n:character is|characters are} not {encoding} and {n:was|were} lost"
        warnings = [*warnings, lost.format(n=Count(n_lost), encoding=encoding)]
    copied = io.TextIOWrapper(copy, "utf-8-sig", newline="")
    return DecodedText(copied, repaired, encoding, "; ".join(warnings), marks.n_left_out)


class _Marks:
    """The byte order marks within a text of joined files: each stands before a line of a file."""

    def __init__(self) -> None:
        self.n_left_out = 0
        self._header = ""

    def left_out(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield texts without the marks at the beginning of lines. A mark within a line is one,
        too, if the header or an object of JSON follows it: the file before it had no line end.
        """
        is_first = True
        for text in _whole_lines(texts):
            if is_first:
                text = text.removeprefix(MARK)
                self._header = re.split(r"[\r\n]", text, maxsplit=1)[0]
                is_first = False
            yield re.sub(MARKED, self._instead, text) if MARK in text else text

    def _instead(self, found: re.Match[str]) -> str:
        is_at_start = not found.start() or found.string[found.start() - 1] in "\r\n"
        rest = found[1]
        header = self._header
        begins_file = bool(header) and (rest == header or header[0] == rest[:1] == "{")
        if not is_at_start and not begins_file:
            return found[0]
        self.n_left_out += len(found[0])
        return "" if is_at_start else "\n"


def _whole_lines(texts: Iterable[str]) -> Iterator[str]:
    """Yield the same text in pieces that end with lines."""
    started = ""
    for text in texts:
        end = text.rfind("\n") + 1
        if end:
            yield started + text[:end]
            started = text[end:]
        else:
            started += text
    if started:
        yield started


class Letters(NamedTuple):
    """The letters beyond ASCII of a text.

    usual: those of one language; or, with symbols, those of words of one language each. n_usual:
    these and the symbols. share: theirs of all letters and symbols.
    """

    text: str
    usual: str
    n_usual: int
    share: float

    @classmethod
    def of(cls, text: str, alphabets: Sequence[str], symbols: bool = False) -> Letters:
        """Return the letters of a text; those of Windows-1252 have symbols beside them."""
        lower = re.sub(STRANGE, "ƿ", text.lower())
        words = re.findall(r"[^\W\d_]+", re.sub("[ªºµ²³¹¼½¾]", "", lower))
        words = [re.sub(r"[\x00-\x7f]", "", word) for word in words]
        n_symbols, letters = 0, "".join(words)
        if symbols:
            n_symbols = len(re.findall(r"[^\w\s\x00-\x7f]", lower))
            usual = "".join(w for w in words if any(re.fullmatch(a, w) for a in alphabets))
        else:
            usual = max(("".join(re.findall(a, letters)) for a in alphabets), key=len)
        n_usual, n_all = len(usual) + n_symbols, len(letters) + n_symbols
        return cls(text, usual, n_usual, round(n_usual / n_all, 2) if n_all else 1.0)


class Fit(NamedTuple):
    """How well an encoding fits a sample. The smallest tuple fits best."""

    # Minus the share of usual letters.
    unusual: float
    # As `chaos`, but 0 for Asian encodings, of which it says little.
    disorder: float
    # The place of the encoding in `encodings.json`.
    place: int
    # The disorder that charset-normalizer finds, without that of the best of its matches.
    chaos: float
    letters: Letters

    def is_as_good_as(self, best: Fit) -> bool:
        """Return whether this text may as well be meant as the best one."""
        is_in_order = self.chaos <= best.chaos + MAX_DISORDER
        margin = MAX_DIFFERENCE if is_in_order else -MAX_DIFFERENCE
        return self.letters.text != best.letters.text and self.unusual < best.unusual + margin


def detect(sample: bytes) -> tuple[str, bool]:
    """Return the encoding of lines that are not UTF-8, and whether no other fits as well.

    Windows-1252 is, unless charset-normalizer finds less disorder in another and that has clearly
    more letters of one of its languages, which `encodings.json` has as regular expressions.
    """
    languages = json.loads(Path(__file__).with_name("encodings.json").read_text("utf-8"))
    alphabets = {name: languages["letters"][kind] for name, kind in languages["encodings"].items()}
    windows = Letters.of(sample.decode("cp1252", "replace"), alphabets["cp1252"], symbols=True)
    fits = _fits(sample, alphabets, windows)
    in_order = [fit for fit in fits if fit.disorder <= MAX_DISORDER]
    best = min(in_order, default=Fit(0, 0, 0, 0, windows))
    letters = best.letters
    n_needed = MIN_DISTINCT if best.unusual == -1 else MANY
    is_sure = (
        -best.unusual > MIN_USUAL
        and len(letters.usual) >= n_needed
        and not any(fit.is_as_good_as(best) for fit in fits)
    )
    name = list(alphabets)[best.place]
    if name != "cp1252":
        n, n_distinct = len(letters.usual), len(set(letters.usual))
        are_different = n_distinct >= MIN_DISTINCT or (n_distinct == 2 and n >= 3 * MANY)
        has_clearly_more = n >= MANY // 2 and n > MIN_RATIO * windows.n_usual
        if is_sure and are_different and has_clearly_more:
            return name, True
        is_sure = False
    is_plain = not windows.usual and windows.share == 1
    # Signs at the place of letters of Latin-9: œuvre, and €.
    is_latin_9 = re.search("[¼½](?=u|il)|¤", windows.text, re.IGNORECASE) is not None
    return WINDOWS, (is_plain or is_sure) and not is_latin_9


def _fits(sample: bytes, alphabets: Mapping[str, Sequence[str]], windows: Letters) -> list[Fit]:
    """Return the encodings in which a sample is not in much disorder. windows: its letters in
    Windows-1252.
    """
    from charset_normalizer import from_bytes

    order = list(alphabets)
    size = max(1, len(sample))
    matches = from_bytes(sample, steps=1, chunk_size=size, threshold=1.0, cp_isolation=order)
    lowest = min((match.chaos for match in matches), default=0)
    fits = []
    for match in matches:
        chaos = round(match.chaos - lowest, 3)
        for name in set(match.could_be_from_charset) & set(order):
            is_asian = name in ASIAN
            if chaos > (MAX_IN_ASIAN if is_asian else MUCH_DISORDER):
                continue
            letters = windows if name == "cp1252" else Letters.of(str(match), alphabets[name])
            disorder = 0 if is_asian else chaos
            fits.append(Fit(-letters.share, disorder, order.index(name), chaos, letters))
    return fits


def wide_encoding(start: bytes) -> str | None:
    """Return UTF-16 or UTF-32 by the byte order mark or where zeros are, or None."""
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if start.startswith(mark):
            return encoding
    low, high = start[::2].count(0), start[1::2].count(0)
    few = min(len(start) // 4, max(8, len(start) // 50))
    if max(low, high) <= few or 10 * min(low, high) > max(low, high):
        return None
    return "utf-16-be" if low > high else "utf-16-le"

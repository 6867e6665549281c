"""Text files of any encoding as UTF-8."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from encodings.aliases import aliases
from pathlib import Path
from typing import NamedTuple

from qkvsearch._utils.scratch import scratch_file
from qkvsearch.errors import DataError, suggest

BYTE_ORDER_MARKS = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
WINDOWS = "Windows-1252"
ASIAN = ("cp932", "euc_jp", "gb18030", "big5", "cp949")
# The encoding is told from about this many bytes around letters beyond ASCII.
SAMPLE, AROUND = 1 << 14, rb"[\x80-\xff]+(?:[\x00-\x7f]{1,30}[\x80-\xff]+){0,9999}[\x00-\x7f]{0,30}"
# Encodings whose disorder (charset-normalizer's, 0 to 1) or share of usual letters differs by no
# more fit equally well. At least half of the letters are usual in the right one.
MAX_DISORDER, MAX_DIFFERENCE, MIN_USUAL = 0.02, 0.05, 0.5
# An encoding is sure with this many letters, or with the least if all are of one language; and any
# but Windows-1252 with times as many letters.
MANY, MIN_DISTINCT, MIN_RATIO = 10, 3, 1.25
# Letters, or symbols within words, in a text that is read as Windows-1252.
DOUBTFUL = r"(?i)[^\W\d_\x00-\x7fªºµ²³¹¼½¾]|\ufffd|[a-z][^\x00-\x7f’“”–—…·®™©][a-z]|£[a-z]"
MAX_IN_ASIAN = 0.2  # charset-normalizer takes kana beside Han for disorder
JOINED = 10  # lines of UTF-8 for each other line, from which a file counts as joined exports


class DecodedText(NamedTuple):
    """A text. repaired: the lines read as `encoding`. warning: why that may be wrong."""

    text: io.TextIOBase
    repaired: int = 0
    encoding: str = WINDOWS
    warning: str = ""


def open_text(path: Path, start: bytes, encoding: str | None) -> DecodedText:
    """Open a text in the encoding that is named or that fits each line. Raises `DataError`."""
    if encoding := encoding or wide_encoding(start):
        try:
            io.TextIOWrapper(io.BytesIO(), encoding)
        except (LookupError, ValueError):
            close = suggest(encoding, [*aliases.values(), *aliases])
            raise DataError(f"no encoding {encoding!r} (`encoding`){close}") from None
        return _copied(_blocks(path, encoding), encoding)
    try:
        for _ in _blocks(path, "utf-8", "strict"):
            pass
        return DecodedText(path.open(encoding="utf-8-sig", newline=""))
    except UnicodeDecodeError:
        return _by_line(path)


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
    return _copied(texts, encoding, n_others, [doubt] * (not is_sure))


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as content:
        for line in content:
            yield from line.splitlines(keepends=True)


def _utf8(line: bytes) -> str | None:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        is_torn = error.reason == "unexpected end of data" and not line[: error.start].isascii()
        return line.decode(errors="replace") if is_torn else None


def _copied(
    texts: Iterable[str], encoding: str, repaired: int = 0, warnings: Sequence[str] = ()
) -> DecodedText:
    """Copy a text as UTF-8, and count the characters that could not be read."""
    copy, n_lost = scratch_file(), 0
    try:
        for text in texts:
            n_lost += text.count("\ufffd")
            copy.write(text.encode(errors="replace"))
    except UnicodeError as error:
        raise DataError(f"the file cannot be read as {encoding} (`encoding`): {error}") from None
    copy.seek(0)
    lost = f"{n_lost:,} characters are not {encoding} and were lost"
    warning = "; ".join([*warnings, *[lost] * bool(n_lost)])
    return DecodedText(io.TextIOWrapper(copy, "utf-8-sig", newline=""), repaired, encoding, warning)


def detect(sample: bytes) -> tuple[str, bool]:
    """Return the encoding of lines that are not UTF-8, and whether no other fits as well.

    Windows-1252 is, unless charset-normalizer finds less disorder in another and that has clearly
    more letters of one of its languages, which `encodings.json` has as regular expressions.
    """
    from charset_normalizer import from_bytes

    alphabets = json.loads(Path(__file__).with_name("encodings.json").read_text("utf-8"))
    order, fits, size = list(alphabets), [], max(1, len(sample))
    matches = from_bytes(sample, steps=1, chunk_size=size, threshold=1.0, cp_isolation=order)
    lowest = min((match.chaos for match in matches), default=0)
    for match in matches:
        chaos = round(match.chaos - lowest, 3)
        for name in set(match.could_be_from_charset) & set(order):
            if chaos <= (MAX_IN_ASIAN if name in ASIAN else MAX_DISORDER):
                share = round(_usual(str(match), alphabets[name])[1], 2)
                rank = -share, 0 if name in ASIAN else chaos, order.index(name)
                fits.append((*rank, chaos, str(match)))
    windows = sample.decode("cp1252", "replace")
    is_plain = not re.search(DOUBTFUL, windows)
    if not fits:
        return WINDOWS, is_plain
    share, _, best, chaos, text = min(fits)
    is_sure = -share > MIN_USUAL and not any(
        other != text and near < share + MAX_DIFFERENCE and disorder <= chaos + MAX_DISORDER
        for near, _, _, disorder, other in fits
    )
    name, in_windows = order[best], _usual(windows, alphabets["cp1252"])[0]
    usual = _usual(text, alphabets[name])[0]
    is_sure &= len(usual) >= (MIN_DISTINCT if share == -1 else MANY)
    if name == "cp1252":
        return WINDOWS, is_sure or is_plain
    is_sure &= len(set(usual)) >= MIN_DISTINCT and len(usual) > MIN_RATIO * len(in_windows)
    return (name, True) if is_sure else (WINDOWS, is_plain)


def _usual(text: str, alphabets: Sequence[str]) -> tuple[str, float]:
    """Return the letters beyond ASCII that one of the expressions matches, and their share."""
    # Letters of another script beside Latin ones, as in a word, are usual in no language.
    text = re.sub(r"(?<=[a-z])[\u0370-\u0fff]|[\u0370-\u0fff](?=[a-z])", "ƿ", text.lower())
    letters = re.sub(r"[\W\d_\x00-\x7fªºµ²³¹¼½¾]+", "", text)
    usual = max(("".join(re.findall(alphabet, letters)) for alphabet in alphabets), key=len)
    return usual, len(usual) / max(1, len(letters))


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

"""Workbooks of an old Excel (.xls): what is in their records, read before a library reads them.

The file is an OLE container: sectors in chains, each a stream. The stream `Workbook` has records,
each of which begins with its type and its length (Microsoft's [MS-CFB] and [MS-XLS]).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from qkvsearch.errors import DataError
from qkvsearch.tables.files.sheet_facts import SheetFacts
from qkvsearch.tables.files.workbook_values import FIRST_OWN_FORMAT, USUAL_PERCENT, is_percent

OLE = b"\xd0\xcf\x11\xe0"
END_OF_CHAIN = 0xFFFFFFFA  # this and all above it are no sectors
ENTRY = 128  # bytes of an entry of the directory
# The streams that tell what a file is.
WORKBOOKS = ("Workbook", "Book")
OTHERS = {
    "EncryptedPackage": "a workbook with a password; save it without one",
    "WordDocument": "a document of an old Word, not a table",
    "PowerPoint Document": "a presentation, not a table",
    "__properties_version1.0": "a message of Outlook, not a table",
}
# Types of records.
BOF, SHEET, FORMAT, STYLE, PASSWORD = 0x0809, 0x0085, 0x041E, 0x00E0, 0x002F
NUMBER, SMALL, TEXT, SHARED, ERROR, FORMULA = 0x0203, 0x027E, 0x0204, 0x00FD, 0x0205, 0x0006
SMALL_ONES, MERGED = 0x00BD, 0x00E5
CELLS = frozenset((NUMBER, SMALL, TEXT, SHARED, ERROR, FORMULA))
# The first bytes of the result of a formula that is an error.
ERROR_RESULT = 2


def sheets_of_excel(content: bytes, label: str) -> list[SheetFacts]:
    """Return the facts about each sheet of an .xls file. Raises `DataError`."""
    try:
        return _sheets(_workbook_stream(content, label), label)
    except (struct.error, IndexError, KeyError, UnicodeError) as error:
        raise DataError(f"{label}: not a spreadsheet, or damaged: {error}") from None


# --- the container ---


def _workbook_stream(content: bytes, label: str) -> bytes:
    """Return the stream with the records of a workbook."""
    size = 1 << struct.unpack_from("<H", content, 30)[0]
    small = 1 << struct.unpack_from("<H", content, 32)[0]
    if size not in (512, 4096) or small != 64:
        raise DataError(f"{label}: not a spreadsheet, or damaged: its sectors have a wrong size")

    def sector(number: int) -> bytes:
        return content[(number + 1) * size : (number + 2) * size]

    table = _sector_table(content, size)
    directory = b"".join(map(sector, _chain(table, _word(content, 48), label)))
    streams: dict[str, tuple[int, int]] = {}
    for at in range(0, len(directory) - ENTRY + 1, ENTRY):
        n_bytes = struct.unpack_from("<H", directory, at + 64)[0]
        name = directory[at : at + max(0, n_bytes - 2)].decode("utf-16-le", "replace")
        streams.setdefault(name, (_word(directory, at + 116), _word(directory, at + 120)))
    workbook = next((name for name in WORKBOOKS if name in streams), None)
    if workbook is None:
        what = next((what for key, what in OTHERS.items() if key in streams), None)
        raise DataError(f"{label}: this is {what or 'a document of an old Office, not a table'}")
    start, length = streams[workbook]
    if length >= _word(content, 56):
        stream = b"".join(map(sector, _chain(table, start, label)))
    else:
        root, _ = streams["Root Entry"]
        blocks = b"".join(map(sector, _chain(table, root, label)))
        words = b"".join(map(sector, _chain(table, _word(content, 60), label)))
        small_table = struct.unpack(f"<{len(words) // 4}I", words)
        chain = _chain(small_table, start, label)
        stream = b"".join(blocks[number * 64 : (number + 1) * 64] for number in chain)
    return stream[:length]


def _word(content: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", content, at)[0])


def _sector_table(content: bytes, size: int) -> tuple[int, ...]:
    """Return, for each sector, the next one of its chain."""
    numbers = list(struct.unpack_from("<109I", content, 76))
    following, seen = _word(content, 68), set()
    while following < END_OF_CHAIN and following not in seen:
        seen.add(following)
        words = struct.unpack_from(f"<{size // 4}I", content, (following + 1) * size)
        numbers += words[:-1]
        following = words[-1]
    table: list[int] = []
    for number in numbers:
        if number < END_OF_CHAIN:
            table += struct.unpack_from(f"<{size // 4}I", content, (number + 1) * size)
    return tuple(table)


def _chain(table: tuple[int, ...], start: int, label: str) -> Iterator[int]:
    """Yield the sectors of a chain. Raises `DataError` for one that goes in a circle."""
    number, n_sectors = start, 0
    while number < END_OF_CHAIN:
        n_sectors += 1
        if n_sectors > len(table):
            raise DataError(f"{label}: not a spreadsheet, or damaged: its sectors have no end")
        yield number
        number = table[number]


# --- the records ---


def _records(stream: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the place, the type and the content of each record."""
    at = 0
    while at + 4 <= len(stream):
        kind, length = struct.unpack_from("<HH", stream, at)
        yield at, kind, stream[at + 4 : at + 4 + length]
        at += 4 + length


def _sheets(stream: bytes, label: str) -> list[SheetFacts]:
    sheets: dict[int, SheetFacts] = {}  # by the place where the records of each begin
    own_formats: dict[int, str] = {}
    styles: list[int] = []  # the number of the format of each
    percent: set[int] | None = None
    sheet: SheetFacts | None = None
    for at, kind, content in _records(stream):
        if kind == PASSWORD:
            raise DataError(f"{label}: a workbook with a password; save it without one")
        if kind == SHEET:
            sheets[_word(content, 0)] = SheetFacts()
        elif kind == FORMAT:
            own_formats[struct.unpack_from("<H", content)[0]] = _format_text(content)
        elif kind == STYLE:
            styles.append(struct.unpack_from("<H", content, 2)[0])
        elif kind == BOF:
            # A chart within a sheet begins anew, and is none of the sheets.
            sheet = sheets.get(at, sheet)
            if percent is None and sheet is not None:
                percent = _percent_styles(styles, own_formats)
        elif sheet is not None:
            _add_cells(sheet, kind, content, percent or set())
    return list(sheets.values())


def _format_text(content: bytes) -> str:
    """Return a format of numbers, in UTF-16 or in one byte a character."""
    is_wide = content[4] & 1
    return content[5:].decode("utf-16-le" if is_wide else "latin-1", "replace")


def _percent_styles(styles: list[int], own_formats: dict[int, str]) -> set[int]:
    percent = set()
    for number, style in enumerate(styles):
        is_own = style >= FIRST_OWN_FORMAT and is_percent(own_formats.get(style, ""))
        if style in USUAL_PERCENT or is_own:
            percent.add(number)
    return percent


def _add_cells(sheet: SheetFacts, kind: int, content: bytes, percent: set[int]) -> None:
    """Count the cells of a record."""
    if kind in CELLS:
        row, column, style = struct.unpack_from("<HHH", content)
        sheet.add(row, column)
        if style in percent:
            sheet.percent.add((row, column))
        if kind == ERROR:
            sheet.n_errors += content[7] == 1
        elif kind == FORMULA:
            sheet.n_errors += content[6] == ERROR_RESULT and content[12:14] == b"\xff\xff"
    elif kind == SMALL_ONES:
        row, first = struct.unpack_from("<HH", content)
        for place in range((len(content) - 6) // 6):
            sheet.add(row, first + place)
            if struct.unpack_from("<H", content, 4 + 6 * place)[0] in percent:
                sheet.percent.add((row, first + place))
    elif kind == MERGED:
        for place in range((len(content) - 2) // 8):
            last = struct.unpack_from("<H", content, 4 + 8 * place)[0]
            sheet.n_merged += last > 0

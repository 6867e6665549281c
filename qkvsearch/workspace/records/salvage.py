"""Rows of a damaged SQLite file, read from its pages without SQLite."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from qkvsearch.workspace.records.rows import PAGE_SIZE

# Where SQLite's file format says that a row's cells go on in other pages, and what stays here.
MOST_LOCAL = PAGE_SIZE - 35
LEAST_LOCAL = (PAGE_SIZE - 12) * 32 // 255 - 23
FILE_HEADER = 100
INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


def rows_in(data: bytes) -> Iterator[tuple[Any, ...]]:
    """The cells of whatever reads like a row of a table; whoever asks compares checksums."""
    for start in range(0, len(data), PAGE_SIZE):
        page = data[start : start + PAGE_SIZE]
        header = FILE_HEADER if start == 0 else 0
        n_rows = int.from_bytes(page[header + 3 : header + 5])
        places = page[header + 8 : header + 8 + 2 * n_rows]
        for (place,) in struct.iter_unpack(">H", places[: len(places) // 2 * 2]):
            try:
                yield _row(data, page, place)
            except (IndexError, ValueError, struct.error):
                continue


def _row(data: bytes, page: bytes, place: int) -> tuple[Any, ...]:
    length, place = _varint(page, place)
    number, place = _varint(page, place)
    payload = _payload(data, page, place, length)
    end, at = _varint(payload, 0)
    cells: list[Any] = []
    places = end
    while at < end:
        kind, at = _varint(payload, at)
        value, places = _cell(payload, places, kind)
        cells.append(value)
    # The first column of `recorded` is another name of the row's number.
    return (number, *cells[1:]) if cells and cells[0] is None else tuple(cells)


def _payload(data: bytes, page: bytes, place: int, length: int) -> bytes:
    """All bytes of a row, of which the last may be in other pages."""
    if length > len(data):
        raise ValueError("longer than the file")
    if length <= MOST_LOCAL:
        return page[place : place + length]
    local = LEAST_LOCAL + (length - LEAST_LOCAL) % (PAGE_SIZE - 4)
    local = local if local <= MOST_LOCAL else LEAST_LOCAL
    found = page[place : place + local]
    following = int.from_bytes(page[place + local : place + local + 4])
    while len(found) < length:
        start = (following - 1) * PAGE_SIZE
        other = data[start : start + PAGE_SIZE] if start >= 0 else b""
        if len(other) < PAGE_SIZE:
            raise ValueError("no such page")
        following = int.from_bytes(other[:4])
        found += other[4 : 4 + length - len(found)]
    return found


def _cell(payload: bytes, place: int, kind: int) -> tuple[Any, int]:
    if kind in (0, 8, 9):
        return {0: None, 8: 0, 9: 1}[kind], place
    if kind == 7:
        return struct.unpack_from(">d", payload, place)[0], place + 8
    if kind in INTEGERS:
        end = place + INTEGERS[kind]
        return int.from_bytes(payload[place:end], signed=True), end
    end = place + (kind - 12) // 2
    if kind < 13 or kind % 2 == 0 or end > len(payload):
        raise ValueError("no text")
    return payload[place:end].decode(), end


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where it ends."""
    value = 0
    for _ in range(8):
        byte = data[place]
        place += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place
    value = value << 8 | data[place]
    return value - 2**64 if value >= 2**63 else value, place + 1

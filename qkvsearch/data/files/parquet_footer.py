"""The metadata of a Parquet file's columns, which pyarrow ends the process for if damaged.

They are structs in the compact protocol of Thrift:
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from typing import Any, BinaryIO, NamedTuple

# How texts are encoded: as they are, or by their numbers in a dictionary (under two names).
PLAIN, BY_NUMBER = 0, {2, 8}
# Fields by their numbers: of the metadata, of a row group, of a column in it, …
ROW_GROUPS, COLUMNS, METADATA = 4, 1, 3
N_VALUES, UNPACKED, ENCODING_STATS = 5, 6, 13
# … and of how many pages of which type have which encoding. A dictionary has type 2.
PAGE_TYPE, ENCODING, DICTIONARY = 1, 2, 2

Struct = dict[int, Any]


class ColumnChunk(NamedTuple):
    """A column in a row group. size: unpacked bytes. encodings: of its pages of cells, if known."""

    n_values: int
    size: int
    encodings: set[int]

    def is_read_as_dictionary(self, is_nested: bool) -> bool:
        """Return whether pyarrow can read texts as a dictionary. Of texts in lists and objects, it
        does not where some are in the dictionary and others are not.
        """
        if is_nested and not self.encodings <= {PLAIN}:
            return bool(self.encodings) and self.encodings <= BY_NUMBER
        return bool(self.encodings) and self.encodings <= {PLAIN, *BY_NUMBER}


def column_chunks(file: BinaryIO) -> list[list[ColumnChunk]]:
    """Return the columns by row group. Raises `ValueError` or `LookupError`."""
    file.seek(-8, 2)
    length = int.from_bytes(file.read(4), "little")
    file.seek(-8 - length, 2)
    metadata, _ = _struct(file.read(length), 0)
    return [
        [_chunk(column[METADATA]) for column in group[COLUMNS]] for group in metadata[ROW_GROUPS]
    ]


def _chunk(metadata: Struct) -> ColumnChunk:
    stats = metadata.get(ENCODING_STATS, ())
    encodings = {each[ENCODING] for each in stats if each[PAGE_TYPE] != DICTIONARY}
    return ColumnChunk(metadata[N_VALUES], metadata[UNPACKED], encodings)


# --- structs in the compact protocol ---


def _struct(data: bytes, at: int) -> tuple[Struct, int]:
    """Return the values of a struct by the numbers of their fields, and where it ends."""
    fields: Struct = {}
    field = 0
    while head := data[at]:
        at += 1
        if head >> 4:
            field += head >> 4
        else:
            field, at = _number(data, at)
        fields[field], at = _value(data, at, head & 15)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, is_listed: bool = False) -> tuple[Any, int]:
    """Return a value that begins at a place, and where it ends."""
    if kind in (1, 2):  # true and false, which a list has in a byte each
        return kind, at + is_listed
    if kind == 3:  # a byte
        return data[at], at + 1
    if kind in (4, 5, 6):  # whole numbers
        return _number(data, at)
    if kind == 7:  # a float
        return None, at + 8
    if kind == 8:  # bytes
        length, at = _varint(data, at)
        return data[at : at + length], at + length
    if kind == 9:  # a list
        n, kind = data[at] >> 4, data[at] & 15
        at += 1
        if n == 15:
            n, at = _varint(data, at)
        if n > len(data) - at:  # a value takes a byte at least
            raise IndexError("a list that is longer than the data")
        values = []
        for _ in range(n):
            value, at = _value(data, at, kind, is_listed=True)
            values.append(value)
        return values, at
    if kind == 12:
        return _struct(data, at)
    raise ValueError(f"no type of a field has the number {kind}")


def _number(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    return (number >> 1) ^ -(number & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 64, 7):
        number |= (data[at + shift // 7] & 127) << shift
        if data[at + shift // 7] < 128:
            return number, at + shift // 7 + 1
    raise ValueError("a number of more than 64 bits")

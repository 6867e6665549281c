"""The pages of a Parquet file by their own headers, which a decoder goes by.

The sizes in the metadata of a file are only what somebody wrote there, and pyarrow ends the process
where metadata of a column are missing. Both are structs in the compact protocol of Thrift:
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

# How texts are encoded: as they are, by their numbers in a dictionary (under two names), or by what
# they share with the text before them.
PLAIN, PLAIN_DICTIONARY, DELTA_BYTE_ARRAY, RLE_DICTIONARY = 0, 2, 7, 8
BY_NUMBER = {PLAIN_DICTIONARY, RLE_DICTIONARY}
CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
# Bytes of the header of a page: usually less than the first, at most the second.
HEADER, LONGEST_HEADER = 1 << 9, 1 << 22
# Fields by their numbers: of the metadata, of a row group, of a column in it, …
ROW_GROUPS, COLUMNS, METADATA = 4, 1, 3
CODEC, PACKED_CHUNK, DATA_OFFSET, DICTIONARY_OFFSET = 4, 7, 9, 11
# … of the header of a page, and of the structs in it.
SIZE, PACKED_SIZE, DATA, DICTIONARY, DATA_V2 = 2, 3, 5, 7, 8
N_VALUES, ENCODING = 1, {DATA: 2, DICTIONARY: 2, DATA_V2: 4}

Struct = dict[int, Any]


class Page(NamedTuple):
    """A page of cells or of a dictionary. start, packed_size: in the file. size: unpacked bytes."""

    is_dictionary: bool
    start: int
    packed_size: int
    size: int
    n_values: int
    encoding: int


def column_chunks(file: BinaryIO) -> list[list[Struct]]:
    """Return the columns' metadata by row group. Raises `ValueError` or `LookupError`."""
    file.seek(-8, 2)
    length = int.from_bytes(file.read(4), "little")
    file.seek(-8 - length, 2)
    metadata, _ = _struct(file.read(length), 0)
    return [[column[METADATA] for column in group[COLUMNS]] for group in metadata[ROW_GROUPS]]


def pages_of(file: BinaryIO, chunk: Struct) -> Iterator[Page]:
    """Yield the pages of a column in a row group."""
    # A column without a cell may have a dictionary alone.
    offsets = chunk[DATA_OFFSET], chunk.get(DICTIONARY_OFFSET, 0)
    start = min((offset for offset in offsets if offset > 0), default=0)
    end = start + chunk[PACKED_CHUNK]
    while start < end:
        header, length = _header(file, start)
        size, packed_size = header[SIZE], header[PACKED_SIZE]
        start += length
        if min(size, packed_size) < 0:
            raise ValueError("the size of a page is below 0")
        for kind in header.keys() & ENCODING.keys():
            about = header[kind]
            encoding = about[ENCODING[kind]]
            yield Page(kind == DICTIONARY, start, packed_size, size, about[N_VALUES], encoding)
        start += packed_size


def is_read_as_dictionary(pages: Sequence[Page], is_nested: bool) -> bool:
    """Return whether pyarrow can read texts as a dictionary. Of texts in lists and objects, it does
    not where some are in the dictionary and others are not.
    """
    encodings = {page.encoding for page in pages if not page.is_dictionary}
    if is_nested:
        return encodings <= BY_NUMBER or encodings <= {PLAIN}
    return encodings <= {PLAIN, *BY_NUMBER}


def shared_size(file: BinaryIO, chunk: Struct, pages: Sequence[Page]) -> int:
    """Return how many bytes the texts take at most that many cells may share."""
    size = longest = 0
    for page in pages:
        if page.is_dictionary:
            longest = _longest_text(file, chunk, page)
        elif page.encoding in BY_NUMBER:
            size += page.n_values * longest
        elif page.encoding == DELTA_BYTE_ARRAY:
            size += page.n_values * page.size
    return size


def _longest_text(file: BinaryIO, chunk: Struct, page: Page) -> int:
    """Return the longest text's length of a dictionary, or its size if it cannot be unpacked."""
    import pyarrow as pa

    file.seek(page.start)
    content = file.read(page.packed_size)
    if chunk[CODEC]:
        try:
            codec = pa.Codec(CODECS.get(chunk[CODEC], "unknown"))
            content = codec.decompress(content, page.size, asbytes=True)
        except (OSError, ValueError):
            return page.size
    at = longest = 0
    while at < len(content):
        length = int.from_bytes(content[at : at + 4], "little")
        longest, at = max(longest, length), at + 4 + length
    return min(longest, page.size)


# --- structs in the compact protocol ---


def _header(file: BinaryIO, start: int) -> tuple[Struct, int]:
    for length in (HEADER, LONGEST_HEADER):
        file.seek(start)
        try:
            return _struct(file.read(length), 0)
        except IndexError:
            continue
    raise ValueError("the header of a page has no end")


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

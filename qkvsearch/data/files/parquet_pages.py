"""The pages of a Parquet file by their own headers, which a reader goes by.

The sizes in the metadata of a file are only what somebody wrote there. A header is a struct in the
compact protocol of Thrift: https://parquet.apache.org/docs/file-format/data-pages/
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

# How texts are encoded: as they are, by their numbers in a dictionary (under two names), or by what
# they share with the text before them.
PLAIN, PLAIN_DICTIONARY, DELTA_BYTE_ARRAY, RLE_DICTIONARY = 0, 2, 7, 8
BY_NUMBER = {PLAIN_DICTIONARY, RLE_DICTIONARY}
# Bytes of a header: usually less than the first, at most the second.
HEADER, LONGEST_HEADER = 1 << 9, 1 << 22
# Fields of the header of a page, and of the structs in it.
SIZE, PACKED_SIZE, DATA, DICTIONARY, DATA_V2 = 2, 3, 5, 7, 8
N_VALUES, ENCODING = 1, {DATA: 2, DICTIONARY: 2, DATA_V2: 4}


class Page(NamedTuple):
    """A page, of cells or of the texts of a dictionary. start, packed_size: where it is in the
    file. size: its bytes, unpacked.
    """

    is_dictionary: bool
    start: int
    packed_size: int
    size: int
    n_values: int
    encoding: int


def pages_of(file: BinaryIO, chunk: Any) -> Iterator[Page]:
    """Yield the pages of a column chunk, which is one of pyarrow's. Raises `ValueError`."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
        start = chunk.dictionary_page_offset
    end = start + chunk.total_compressed_size
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
    """Return whether pyarrow can read a chunk of texts as a dictionary. Of texts in lists and
    objects, it does not where some are in the dictionary and others are not.
    """
    encodings = {page.encoding for page in pages if not page.is_dictionary}
    if is_nested:
        return encodings <= BY_NUMBER or encodings <= {PLAIN}
    return encodings <= {PLAIN, *BY_NUMBER}


def shared_size(file: BinaryIO, chunk: Any, pages: Sequence[Page]) -> int:
    """Return how many bytes the texts take at most that many cells of a chunk may share."""
    size = longest = 0
    for page in pages:
        if page.is_dictionary:
            longest = _longest_text(file, chunk, page)
        elif page.encoding in BY_NUMBER:
            size += page.n_values * longest
        elif page.encoding == DELTA_BYTE_ARRAY:
            size += page.n_values * page.size
    return size


def _longest_text(file: BinaryIO, chunk: Any, page: Page) -> int:
    """Return the length of the longest text of a dictionary; of one that cannot be unpacked here,
    its size.
    """
    import pyarrow as pa

    file.seek(page.start)
    content = file.read(page.packed_size)
    if chunk.compression != "UNCOMPRESSED":
        try:
            codec = pa.Codec(chunk.compression.lower())
            content = codec.decompress(content, page.size, asbytes=True)
        except (OSError, ValueError):
            return page.size
    at = longest = 0
    while at < len(content):
        length = int.from_bytes(content[at : at + 4], "little")
        longest, at = max(longest, length), at + 4 + length
    return min(longest, page.size)


def _header(file: BinaryIO, start: int) -> tuple[dict[int, Any], int]:
    for length in (HEADER, LONGEST_HEADER):
        file.seek(start)
        try:
            return _struct(file.read(length), 0)
        except IndexError:
            continue
    raise ValueError("the header of a page has no end")


def _struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """Return the numbers and the structs of a struct by their fields, and where it ends."""
    fields: dict[int, Any] = {}
    field = 0
    while head := data[at]:
        at += 1
        kind = head & 15
        if head >> 4:
            field += head >> 4
        else:
            field, at = _number(data, at)
        if kind in (4, 5, 6):  # whole numbers
            fields[field], at = _number(data, at)
        elif kind == 8:  # bytes
            length, at = _varint(data, at)
            at += length
        elif kind == 12:
            fields[field], at = _struct(data, at)
        elif kind not in (1, 2):  # True, False
            raise ValueError(f"the header of a page has a field of type {kind}")
    return fields, at + 1


def _number(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    return (number >> 1) ^ -(number & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 64, 7):
        number |= (data[at + shift // 7] & 127) << shift
        if data[at + shift // 7] < 128:
            return number, at + shift // 7 + 1
    raise ValueError("the header of a page has a number of more than 64 bits")

"""What a page reads, as bytes: files small enough that a query needs few of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from qkvsearch.retrieval.quantized import QuantizedKeys
from qkvsearch.web.site.lookups import Lookup, Lookups

# A query reads the shards of its words, one each at the most.
SHARD_BYTES = 96_000
# A screenful of hits reads ten of these at the most.
SHARD_ITEMS = 100
# Keys are read after the first answer, in pieces, so that it can be told how far they are.
SHARD_KEYS = 4096
# Of a spelling so many characters at the most are those of the word before: one printed character.
MOST_SHARED = 90


def front_coded(words: Sequence[str]) -> bytes:
    """Sorted words, a line each: how many characters it begins with that the one before begins
    with, as the character of that number above blank, and the rest (Witten, Moffat and Bell 1999,
    "Managing Gigabytes", 4.1, front coding). Characters are those of UTF-16, as in JavaScript.

    >>> front_coded(["sea", "season", "seed"])
    b' sea\\n#son\\n"ed'
    """
    lines, before = [], ""
    for word in words:
        shared = _shared(before, word)
        lines.append(chr(32 + shared) + word[shared:])
        before = word
    return "\n".join(lines).encode("utf-8", errors="replace")


def _shared(one: str, other: str) -> int:
    """How many characters both begin with, of those that are one unit of UTF-16."""
    n = 0
    for a, b in zip(one[:MOST_SHARED], other, strict=False):
        if a != b or ord(a) > 0xFFFF:
            break
        n += 1
    return n


def word_numbers(lookups: Lookups) -> bytes:
    """uint32 (n_words,), the lookup of each word; uint16 (n_lookups,), how many items it finds."""
    counts = np.array([len(lookup.items) for lookup in lookups.every], "<u2")
    return lookups.numbers.astype("<u4").tobytes() + counts.tobytes()


def lookup_shards(
    lookups: Sequence[Lookup], vectors: Mapping[str, QuantizedKeys]
) -> Iterator[tuple[int, bytes]]:
    """The number of the first lookup of each shard, and its bytes. vectors: by dense head, those of
    the lookups' terms (n_lookups, d), weighted.

    uint32, the length of what follows: in JSON, the ways of those lookups that have several, by
    place in the shard; blanks to a multiple of four. Then float32: of each head a scale a lookup;
    the items' weights. uint16: the items; the best ways. int8: of each head d codes a
    lookup.
    """
    begin, size = 0, 0
    width = sum(found.codes.shape[1] + 4 for found in vectors.values())
    for end, lookup in enumerate(lookups):
        own = 8 * len(lookup.items) + width + sum(map(len, lookup.ways))
        if size and size + own > SHARD_BYTES:
            yield begin, _shard(lookups[begin:end], vectors, slice(begin, end))
            begin, size = end, 0
        size += own
    yield begin, _shard(lookups[begin:], vectors, slice(begin, len(lookups)))


def _shard(lookups: Sequence[Lookup], vectors: Mapping[str, QuantizedKeys], span: slice) -> bytes:
    ways = {place: found.ways for place, found in enumerate(lookups) if found.ways}
    text = as_json(ways)
    text += b" " * (-len(text) % 4)
    pieces = [np.array([len(text)], "<u4").tobytes(), text]
    pieces += [found.scales[span].astype("<f4").tobytes() for found in vectors.values()]
    pieces += [found.weights.astype("<f4").tobytes() for found in lookups]
    pieces += [found.items.astype("<u2").tobytes() for found in lookups]
    pieces += [found.best.astype("<u2").tobytes() for found in lookups]
    pieces += [found.codes[span].tobytes() for found in vectors.values()]
    return b"".join(pieces)


def key_shards(keys: QuantizedKeys) -> Iterator[bytes]:
    """float32: a scale an item; int8: d codes an item."""
    for begin in range(0, len(keys), SHARD_KEYS):
        span = slice(begin, begin + SHARD_KEYS)
        yield keys.scales[span].astype("<f4").tobytes() + keys.codes[span].tobytes()


def item_shards(rows: Sequence[Sequence[Any]]) -> Iterator[bytes]:
    """Each item as a JSON list: id, title, then the cells."""
    for begin in range(0, len(rows), SHARD_ITEMS):
        yield as_json(rows[begin : begin + SHARD_ITEMS])


def as_json(found: Any) -> bytes:
    """Without blanks, in UTF-8; half a pair of surrogates becomes a question mark."""
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", errors="replace")

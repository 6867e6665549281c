"""A dictionary in a byte a word: what is a word is not mended, though the catalog be without it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Bits a word and places a word (Bloom 1970, "Space/time trade-offs in hash coding with allowable
# errors"): one in fifty misspellings passes for a word, and is not mended.
BITS, PLACES = 8, 5
# Fowler, Noll and Vo's hash, FNV-1a (RFC 9923): the prime and, for two hashes, two beginnings.
PRIME, BEGINNINGS = np.uint32(16777619), (2166136261, 3339675911)


def bloom_filter(words: Sequence[str]) -> bytes:
    """Bits of which each word sets five; a word is none if one of its is not set. The bits of a
    byte count from the lowest.

    >>> bits = np.unpackbits(np.frombuffer(bloom_filter(["sea"]), np.uint8), bitorder="little")
    >>> sorted(set(places(["sea"], len(bits))[0].tolist())) == np.flatnonzero(bits).tolist()
    True
    """
    n_bits = max(64, 8 * -(-BITS * len(words) // 8))
    bits = np.zeros(n_bits, bool)
    bits[places(words, n_bits)] = True
    return np.packbits(bits, bitorder="little").tobytes()


def places(words: Sequence[str], n_bits: int) -> np.ndarray:
    """Which bits each word sets, int64 (n, 5): (h₁ + i · h₂) mod 2³² mod n_bits, with h₂ odd
    (Kirsch and Mitzenmacher 2008, "Less hashing, same performance"). Words are of characters that
    are one unit of UTF-16 each.
    """
    if not words:
        return np.zeros((0, PLACES), np.int64)
    wide = np.array(words)
    codes = wide.view(np.uint32).reshape(len(words), -1)
    first, second = (_hashed(codes, np.uint32(begin)) for begin in BEGINNINGS)
    steps = np.arange(PLACES, dtype=np.uint32)
    found = first[:, None] + steps * (second | np.uint32(1))[:, None]
    return np.asarray(found % np.uint32(n_bits)).astype(np.int64)


def _hashed(codes: np.ndarray, begin: np.uint32) -> np.ndarray:
    found = np.full(len(codes), begin, np.uint32)
    for column in codes.T:
        found = np.where(column > 0, (found ^ column) * PRIME, found)
    return found

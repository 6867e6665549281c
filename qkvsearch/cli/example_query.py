"""The query that `build` ends with: words of the catalog's own titles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress, pairwise

# Titles that are read for an example.
MAX_TITLES = 5_000
# A query that people see at one glance.
MAX_LENGTH = 40
# Signs between words, Chinese ones as well, but no hyphen and no apostrophe.
SIGNS = '.,;:!?"`()[]{}<>|/\\–—…“”„«»‹›' + "，。、；：！？（）《》「」『』【】·"
BETWEEN = str.maketrans(dict.fromkeys(SIGNS, " "))


def example_queries(titles: Sequence[str], stop_words: frozenset[str]) -> Iterator[str]:
    """Yield queries for a catalog with these titles, the best example first: two words that stand
    side by side in most titles, then single words, then whole titles.

    >>> titles = ["Rain jacket, red", "Rain jacket for kids", "Tent for kids"]
    >>> list(example_queries(titles, frozenset({"for"})))[:3]
    ['rain jacket', 'rain', 'jacket']
    >>> next(example_queries(["霸王别姬", "大红灯笼高高挂"], frozenset()))
    '霸王别姬'
    """
    shown = [" ".join(title.split()) for title in titles[:MAX_TITLES]]
    pairs: Counter[str] = Counter()
    singles: Counter[str] = Counter()
    for title in shown:
        words = title.translate(BETWEEN).lower().split()
        is_telling = [_is_telling(word, stop_words) for word in words]
        # Each title counts once.
        singles.update(dict.fromkeys(compress(words, is_telling)).keys())
        neighbours = zip(pairwise(words), pairwise(is_telling), strict=True)
        pairs.update(dict.fromkeys(f"{a} {b}" for (a, b), tell in neighbours if all(tell)).keys())
    # Words that stand side by side in one title alone may have met by chance.
    known = Counter({pair: count for pair, count in pairs.items() if count > 1})
    for counts in (known, singles):
        yield from (query for query, _ in counts.most_common() if _is_short(query))
    yield from filter(_is_short, shown)


def _is_telling(word: str, stop_words: frozenset[str]) -> bool:
    """Return whether a word says what an item is about: it has letters alone, and more than one."""
    return len(word) > 1 and word.isalpha() and word not in stop_words


def _is_short(query: str) -> bool:
    """Return whether a query can be read at one glance, and typed within double quotes."""
    return 0 < len(query) <= MAX_LENGTH and not any(sign in query for sign in '"$`\\!')

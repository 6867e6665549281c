"""The words of the reader's own sentence, of which Chinese marks none by spaces."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import compress

import numpy as np

from qkvsearch.text.analysis import CJK, RUNS
from qkvsearch.text.encoded_text import EncodedText

IS_CHINESE = re.compile(f"[{CJK}]")
# Two words of Chinese, as who writes them sets them apart.
SPACED = re.compile(rf"(?<=[{CJK}])\s+(?=[{CJK}])")


def words_of(sentence: str) -> list[str]:
    """Return the words of a sentence.

    In Chinese they are what spaces set apart. Without spaces, characters that come again together
    are one word, and every other character is one.

    >>> words_of("I saw a saw."), words_of("他把苹果洗了，苹果很甜")
    (['I', 'saw', 'a', 'saw'], ['他', '把', '苹果', '洗', '了', '苹果', '很', '甜'])
    >>> words_of("我 喜欢 我")
    ['我', '喜欢', '我']
    """
    runs = RUNS.findall(sentence)
    if SPACED.search(sentence):
        return runs
    chinese = [run for run in runs if IS_CHINESE.match(run)]
    return [
        word
        for run in runs
        for word in (_repeated(run, chinese) if IS_CHINESE.match(run) else [run])
    ]


def _repeated(run: str, runs: Sequence[str]) -> Iterator[str]:
    """Yield the words of a run of Chinese: the longest that come again, else single characters."""
    start = 0
    while start < len(run):
        end = start + 1
        # What comes again begins with what comes again, so that no longer piece has to be tried.
        while end < len(run) and _count(run[start : end + 1], runs) > 1:
            end += 1
        yield run[start:end]
        start = end


def _count(piece: str, runs: Sequence[str]) -> int:
    return sum(run.count(piece) for run in runs)


def by_words(text: EncodedText, words: Iterable[str]) -> EncodedText:
    """Return an encoded text whose neighbours are one word where together they are a Chinese one.

    An encoder that reads a character at a time has 苹 and 果 where `words` have 苹果.
    """
    chinese = {word for word in words if IS_CHINESE.match(word)}
    longest = max(map(len, chinese), default=1)
    joined: list[str] = []
    sizes: list[int] = []
    start = 0
    while start < len(text.words):
        sizes_here = range(min(longest, len(text.words) - start), 1, -1)
        is_one = ("".join(text.words[start : start + n]) in chinese for n in sizes_here)
        size = next(compress(sizes_here, is_one), 1)
        joined.append("".join(text.words[start : start + size]))
        sizes.append(size)
        start += size
    of_words = np.repeat(np.arange(len(joined)), sizes)
    return replace(text, words=joined, owners=of_words[text.owners])

"""Lesson on context: a sentence with a word that occurs twice, and how outputs depend on inputs."""

from collections.abc import Sequence

import numpy as np

from qkvsearch._utils.folding import fold
from qkvsearch.attention.gradients import attention_vjp
from qkvsearch.errors import QkvError
from qkvsearch.lessons.compute.sentences import words_of

MAX_WORDS = 12


def twice_in(sentence: str) -> tuple[list[str], int, int]:
    """Return the words, and the first and last index of a word that occurs twice.

    Of several such words it is the longest: “bank” says more than “the”. Raises `QkvError` where no
    word occurs again after another, or there are too many words.

    >>> twice_in("I saw a saw.")
    (['I', 'saw', 'a', 'saw'], 1, 3)
    >>> words, first, last = twice_in("Die Katze mag die Bank, nicht jede Bank")
    >>> words[first], last
    ('Bank', 7)
    """
    words = words_of(sentence)
    if len(words) > MAX_WORDS:
        raise QkvError(
            f"`sentence` has {len(words)} words, more than the {MAX_WORDS} that are shown: "
            "give a shorter one"
        )
    folded = [fold(word) for word in words]
    again: list[tuple[int, int]] = []
    for first, word in enumerate(folded):
        last = len(folded) - 1 - folded[::-1].index(word)
        if set(folded[first:last]) - {word}:
            again.append((first, last))
    if again:
        return words, *max(again, key=lambda ends: len(folded[ends[0]]))
    raise QkvError(
        f"`sentence` {sentence!r} has no word that comes back after another one, as in "
        '"I saw a saw": this lesson asks what tells the two apart'
    )


def vectors_of(words: Sequence[str], d: int = 4) -> np.ndarray:
    """Return a vector for each word (n, d), the same for the same word, from a random table."""
    folded = [fold(word) for word in words]
    rows = list(dict.fromkeys(folded))
    table = np.random.default_rng(0).normal(size=(len(rows), d)).round(1)
    return np.asarray(table[[rows.index(word) for word in folded]])


def jacobian(x: np.ndarray, is_causal: bool = False) -> np.ndarray:
    """Return ∂b/∂a (n, d, n, d) of b = attention(a, a, a), by the engine's gradients."""
    _, pull = attention_vjp(x, x, x, is_causal=is_causal)
    derivatives = np.zeros((*x.shape, *x.shape))
    for index in np.ndindex(*x.shape):
        one = np.zeros_like(x)
        one[index] = 1
        back = pull(one)
        derivatives[index] = back.query + back.key + back.value
    return derivatives

"""Candidates for a misspelled word: words of the catalog near it. `rank/expansion.py` chooses.

Damerau 1964 ("A technique for computer detection and correction of spelling errors"): four in five
errors are one letter too many, too few or wrong, or two that are swapped.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from math import log10

import numpy as np

from qkvsearch._utils.folding import fold
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.languages import CODES, ENGLISH, iso_code

# The lengths from which a word may have one error, and two.
MIN_LENGTH_ONE_ERROR, MIN_LENGTH_TWO_ERRORS = 4, 8
# The weight of a corrected word is multiplied by this for each error.
ERROR_PENALTY = 0.8
# The minimal length of both words that were typed without a space between them.
MIN_HALF = 4
# The shares of a language's running text between which a word says less the more common it is, and
# the smallest weight. Chosen on TED's dev queries.
COMMON, RARE, MIN_RARITY = 1e-2, 1e-5, 0.1


def max_errors(word: str) -> int:
    """Return how many errors a word may have.

    >>> [max_errors(word) for word in ("tea", "bread", "beginers")]
    [0, 1, 2]
    """
    if len(word) >= MIN_LENGTH_TWO_ERRORS:
        return 2
    if len(word) >= MIN_LENGTH_ONE_ERROR:
        return 1
    return 0


class LetterIndex:
    """An index of words by their letters, which leaves few words to compare with a misspelled one:
    each error adds at most one letter and removes at most one.

    >>> LetterIndex(["jacket", "packet", "rain"]).candidates("jakcet")
    ['jacket', 'packet']
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        self._order = np.argsort(lengths, kind="stable")
        self._lengths = lengths[self._order]
        self._letters = _letters(words)[self._order]

    def candidates(self, word: str) -> list[str]:
        """Return the words, in order, that may differ from this one by at most `max_errors`."""
        limit = max_errors(word)
        letters = _letters([word])[0]
        # Each error changes the length by one at most: a run of the words sorted by length.
        bounds = np.array([len(word) - limit, len(word) + limit + 1])
        similar_length = slice(*self._lengths.searchsorted(bounds))
        others = self._letters[similar_length]
        n_added = np.bitwise_count(others & ~letters)
        n_removed = np.bitwise_count(letters & ~others)
        is_candidate = (n_added <= limit) & (n_removed <= limit)
        rows = np.sort(self._order[similar_length][is_candidate])
        return [self.words[row] for row in rows.tolist()]


def _letters(words: Sequence[str]) -> np.ndarray:
    """Return the letters of each word as bits, uint32 (n,); letters of other scripts share bits."""
    if not len(words):
        return np.zeros(0, np.uint32)
    # NumPy stores texts as code points, with zeros behind the shorter ones.
    codes = np.array(words).view(np.uint32).reshape(len(words), -1)
    bits = np.where(codes > 0, np.uint32(1) << (codes & np.uint32(31)), np.uint32(0))
    return np.asarray(np.bitwise_or.reduce(bits, axis=1))


def near_words(word: str, known: Sequence[str], limit: int = 50) -> list[tuple[str, int]]:
    """Return the words of `known` that differ from `word` by the fewest errors, and their number.

    An error is a letter added, dropped or replaced, or two neighbours swapped. A different first
    letter counts as two errors, since people rarely mistype it. In words of three letters only
    swaps are corrected.

    >>> near_words("jakcet", ["jacket", "packet", "rain"])
    [('jacket', 1)]
    """
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    if len(word) == MIN_LENGTH_ONE_ERROR - 1:
        swapped = {word[1] + word[0] + word[2], word[0] + word[2] + word[1]}
        return [(other, 1) for other in known if other in swapped]
    most_errors = max_errors(word)
    if not most_errors:
        return []

    near: list[tuple[str, int]] = []
    matches = process.extract(
        word, known, scorer=OSA.distance, score_cutoff=most_errors, limit=limit
    )
    for other, distance, _ in matches:
        errors = int(distance)
        first_two_are_swapped = word[:2] == other[1::-1]
        if word[0] != other[0] and not first_two_are_swapped:
            errors += 1
        if errors <= most_errors:
            near.append((other, errors))
    fewest = min((errors for _, errors in near), default=0)
    return [(other, errors) for other, errors in near if errors == fewest]


def without_doubles(word: str) -> str:
    """Return a word with one letter for each run of the same letter.

    >>> without_doubles("hobbit")
    'hobit'
    """
    return "".join(letter for letter, _ in groupby(word))


def split_in_two(
    word: str, is_known: Callable[[str], bool], shortest: int = MIN_HALF
) -> tuple[str, str] | None:
    """Split a word into two known words, typed without a space, as evenly as possible.

    >>> split_in_two("rainjacket", {"rain", "jacket"}.__contains__)
    ('rain', 'jacket')
    """
    cuts = range(shortest, len(word) - shortest + 1)
    for cut in sorted(cuts, key=lambda cut: abs(2 * cut - len(word))):
        if is_known(word[:cut]) and is_known(word[cut:]):
            return word[:cut], word[cut:]
    return None


def is_in_dictionary(word: str, languages: Sequence[str] = ()) -> bool:
    """Return whether a dictionary of English or of a language, by ISO 639-1 codes, has the word.

    Such a word is no misspelling, even if the catalog does not have it.
    """
    spellings = {fold(word), word.casefold()}
    dictionaries = _dictionaries(tuple(languages))
    return any(s in words for words in dictionaries for s in spellings)


def is_dictionary_loaded() -> bool:
    """Return whether a dictionary is in memory; loading one takes as long as many searches."""
    return _dictionaries.cache_info().currsize > 0


@lru_cache(maxsize=4)
def word_rarity(language: str) -> Mapping[str, float]:
    """Return the weights below 1 of the terms that are common in a language, whatever a catalog is
    about; none where the library has no dictionary of the language.

    The weight is linear in the logarithm of a term's share of the language's running text.

    >>> rarity = word_rarity("english")
    >>> rarity["talk"] < rarity["movi"] < 1, "loop" in rarity
    (True, False)
    """
    codes = [code for code, name in CODES.items() if name == language]
    counts = _dictionary(codes[0]) if codes else None
    if counts is None:
        return {}
    total = sum(counts.values())
    analyzer = Analyzer(language)
    # Several words have one term. Ten that are rare by themselves may be common together.
    shares: dict[str, float] = {}
    for word, count in counts.items():
        if count > RARE / 10 * total:
            for token in analyzer.tokens(word):
                shares[token.term] = shares.get(token.term, 0.0) + count / total

    weights = {}
    for term, share in shares.items():
        weight = log10(COMMON / share) / log10(COMMON / RARE)
        if weight < 1:
            weights[term] = round(max(weight, MIN_RARITY), 3)
    return weights


@lru_cache(maxsize=4)
def _dictionaries(languages: tuple[str, ...]) -> list[Mapping[str, int]]:
    """Return the available dictionaries of the languages and of English."""
    codes = dict.fromkeys([*languages, iso_code(ENGLISH)])
    return [words for words in map(_dictionary, codes) if words is not None]


@lru_cache(maxsize=4)
def _dictionary(code: str) -> Mapping[str, int] | None:
    """Return how often texts of a language have each word; None if the library has no dictionary
    of it.
    """
    from spellchecker import SpellChecker

    try:
        counts: Mapping[str, int] = SpellChecker(language=code).word_frequency.dictionary
        return counts
    except ValueError:
        return None

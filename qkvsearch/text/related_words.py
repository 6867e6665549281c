"""Words related to a query word: words with the same beginning, and compounds.

*Same beginning*: "guitarist" finds "guitar", though their stems differ. A stemmer removes
grammatical endings only. Adamson and Boreham 1974 ("The use of an association measure based on
character structure to identify semantically related pairs of words") compare the letters that two
words share by Dice's coefficient; here only the letters of a common beginning count.

*Compounds*: "jacke" finds "regenjacke". A word is split only into words of the catalog, as in Koehn
and Knight 2003 ("Empirical methods for compound splitting", section 2), here at search time.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import takewhile

import numpy as np

from qkvsearch._utils.folding import fold
from qkvsearch.text.analysis import stem
from qkvsearch.text.languages import fact
from qkvsearch.text.vocabulary import Vocabulary

# --- words with the same beginning ---

# The minimal length of a common beginning, and the minimal share of all letters of both words that
# it covers; chosen by `benchmarks/defaults/related_words.py`.
MIN_PREFIX, MIN_SIMILARITY = 4, 0.65
# The shorter word must be a prefix of the longer one, but for its last letter: "recipe" and
# "receive" share as many letters, and nothing else.
MAX_DIFFERING_LETTERS = 1
# Related terms are used only where items have at most this many words on average: a longer text
# contains the other forms of its words itself, and false matches do harm there.
MAX_MEAN_LENGTH = 50


def related_terms(term: str, candidates: Iterable[str]) -> dict[str, float]:
    """Return the candidates that begin like a term, with their similarity to it, from .65 to 1.

    >>> related_terms("guitarist", ["guitar", "guilt", "guitarist"])
    {'guitar': 0.8}
    """
    if len(term) < MIN_PREFIX or not term.isalpha():
        return {}
    similarities = {
        candidate: prefix_similarity(term, candidate)
        for candidate in candidates
        if candidate != term and candidate.isalpha()
    }
    return {word: value for word, value in similarities.items() if value >= MIN_SIMILARITY}


def prefix_similarity(a: str, b: str) -> float:
    """Return 2 n / (len(a) + len(b)) for a common beginning of n letters; 0 where it is too short.

    >>> prefix_similarity("guitarist", "guitar")
    0.8
    """
    short, long = sorted((a, b), key=len)
    for n_differing in range(MAX_DIFFERING_LETTERS + 1):
        n = len(short) - n_differing
        if n < MIN_PREFIX + n_differing:
            return 0.0
        if long.startswith(short[:n]):
            return 2 * n / (len(a) + len(b))
    return 0.0


# --- compounds ---

# The letters that link two parts, by Snowball's name of each language that writes compounds as one
# word.
LINKS = fact("links")
# Endings that a first part may lose: Schule, Schulfest; wohnen, Wohnheim; flicka, flickskola.
DROPPED_ENDINGS = fact("dropped_endings")
MIN_COMPONENT = 4
# A last component of this length is enough where the catalog does not have the first one as a word:
# shops sell "Winterjacken" and never mention winter. Adjective endings, as in "prak-tisch", do not
# count.
MIN_LONE_COMPONENT = 5
ADJECTIVE_ENDINGS = ("isch",)
# How much longer than a word its other forms may be: "haus", "hausern".
MAX_ENDING = 4
VOWEL = re.compile("[aeiouy]").search


def compounds_of(word: str, words: np.ndarray, language: str) -> list[str]:
    """Return the catalog's compounds that have a word, in any form, as first or last component.

    words: the catalog's words, folded, sorted UTF-8, dtype S (n_words,), without duplicates. Both
    components have at least 4 letters. The other one is a word of the catalog too; or else `word`
    has at least 5 letters and comes last, and the other one has a vowel. The result is in the
    catalog's order; it is empty for languages that do not write compounds as one word.

    >>> words = np.array([b"jackpot", b"jackentasche", b"regen", b"regenjacken", b"tasche"])
    >>> compounds_of("Jacke", np.sort(words), "german")
    ['jackentasche', 'regenjacken']
    """
    word = fold(word)
    if language not in LINKS or len(word) < MIN_COMPONENT or not len(words):
        return []
    lexicon = _Lexicon(words, language)
    return sorted({*_with_first(word, lexicon), *_with_last(word, lexicon)})


def split_compound(word: str, words: np.ndarray, language: str) -> tuple[str, str] | None:
    """Split a word into two words of the catalog, the last one as it is spelled in the word.

    Return None if that is not possible. `words` are as in `compounds_of`. Splits without linking
    letters come first, then those with the longest last component.

    >>> split_compound("Regenjacken", np.array([b"jacke", b"regen"]), "german")
    ('regen', 'jacken')
    """
    word = fold(word)
    if language not in LINKS:
        return None
    lexicon = _Lexicon(words, language)
    splits = (
        (first, word[cut:])
        for is_linked in (False, True)
        for cut in range(MIN_COMPONENT, len(word) - MIN_COMPONENT + 1)
        for first in lexicon.first_components(word[:cut], is_linked)
        if lexicon.has_form_of(word[cut:])
    )
    return next(splits, None)


class _Lexicon:
    """The catalog's words, with lookup of a component in any of its forms."""

    def __init__(self, words: np.ndarray, language: str) -> None:
        self.words, self.language = words, language
        self.vocabulary = Vocabulary(words)

    def is_word(self, text: str) -> bool:
        return self.vocabulary.row(text) >= 0

    def has_form_of(self, text: str) -> bool:
        """Return whether the catalog has a word with the same stem."""
        if self.is_word(text):
            return True
        root = self.stem(text)
        longest = len(text) + MAX_ENDING
        forms = self.vocabulary.with_prefix(_common_prefix(text, root))
        return any(len(form) <= longest and self.stem(form) == root for form in forms)

    def first_components(self, text: str, is_linked: bool | None = None) -> Iterator[str]:
        """Yield the words that may stand before the last component of a compound that begins with
        `text`. is_linked: only those with linking letters behind them, or only those without.
        """
        for link in LINKS[self.language]:
            component = text.removesuffix(link)
            if is_linked not in (None, bool(link)) or not text.endswith(link):
                continue
            if len(component) >= MIN_COMPONENT:
                endings = () if link else DROPPED_ENDINGS[self.language]
                spellings = [component, *(component + ending for ending in endings)]
                yield from filter(self.is_word, spellings)

    def stem(self, text: str) -> str:
        return _folded_stem(text, self.language)

    def containing(self, text: str) -> Iterator[str]:
        """Yield the words that contain a text."""
        width = self.words.itemsize
        raw = np.ascontiguousarray(self.words).view(np.uint8)
        matches = re.finditer(re.escape(text.encode(errors="surrogatepass")), raw.data)
        rows = dict.fromkeys(match.start() // width for match in matches)
        # A match may reach from the end of one word into the next.
        return (word for row in rows if text in (word := self.words[row].decode()))


@lru_cache(maxsize=1 << 14)
def _folded_stem(text: str, language: str) -> str:
    return fold(stem(text, language))


def _with_first(word: str, lexicon: _Lexicon) -> Iterator[str]:
    """Yield the compounds whose first component is the word."""
    endings = DROPPED_ENDINGS[lexicon.language]
    for start in {word, *(word.removesuffix(ending) for ending in endings)}:
        links = LINKS[lexicon.language] if start == word else ("",)
        if len(start) < MIN_COMPONENT - 1:
            continue
        for compound in lexicon.vocabulary.with_prefix(start):
            for link in links:
                last = compound[len(start) + len(link) :]
                if (
                    compound.startswith(link, len(start))
                    and len(last) >= MIN_COMPONENT
                    and lexicon.has_form_of(last)
                ):
                    yield compound
                    break


def _with_last(word: str, lexicon: _Lexicon) -> Iterator[str]:
    """Yield the compounds whose last component is the word."""
    root = lexicon.stem(word)
    suffices_alone = len(word) >= MIN_LONE_COMPONENT and not root.endswith(ADJECTIVE_ENDINGS)
    prefix = _common_prefix(word, root)
    for compound in lexicon.containing(prefix):
        cut = compound.rfind(prefix)
        rest, last = compound[:cut], compound[cut:]
        if len(rest) < MIN_COMPONENT or len(last) > len(word) + MAX_ENDING:
            continue
        if last != word and lexicon.stem(last) != root:
            continue
        if any(lexicon.first_components(rest)) or (suffices_alone and VOWEL(rest)):
            yield compound


def _common_prefix(word: str, root: str) -> str:
    """Return what all forms of a word begin with."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(word, root, strict=False))
    n = sum(1 for _ in same)
    return word[:n] if n >= MIN_COMPONENT - 1 else word

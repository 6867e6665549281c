"""Text to terms: what the lexical keys match and the corpus encoder has vectors for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

# Han, kana and Hangul are written without spaces between words (or, for Korean, with endings
# attached), so pairs of neighbouring characters stand in for words.
CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
# The vowel signs of Hebrew, Arabic, the scripts of India, and Thai are marks, not letters, and
# belong to the word.
MARKS = (
    "\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0963\u0966-\u0dff\u0e31-\u0e3a\u0e47-\u0e4e"
)
RUNS = re.compile(rf"[{CJK}]+|(?:(?![{CJK}_])[\w{MARKS}])+(?:'(?:(?![{CJK}_])[\w{MARKS}])+)*")
IS_CJK = re.compile(f"[{CJK}]").match
HAS_CJK = re.compile(f"[{CJK}]").search
ACCENTS = re.compile("[\u0300-\u036f]")
MAX_TERM = 32
# The vowels and finals of Korean syllables that are written letter by letter.
JAMO = re.compile("[\u1160-\u11ff]")
# The words of texts up to this many characters are kept, of as many texts as take some 20 MB: texts
# share their words. Character pairs are too many for that.
SHORT = 200
# Where in a text: (start, end).
Span = tuple[int, int]

STOP_WORDS = frozenset(
    """
    a about above after again against all am an and any are aren't as at be because been before
    being below between both but by can can't cannot could couldn't did didn't do does doesn't
    doing don't down during each few for from further had hadn't has hasn't have haven't having he
    he'd he'll he's her here here's hers herself him himself his how how's i i'd i'll i'm i've if
    in into is isn't it it's its itself let's me more most mustn't my myself no nor not of off on
    once only or other ought our ours ourselves out over own same she she'd she'll she's should
    shouldn't so some such than that that's the their theirs them themselves then there there's
    these they they'd they'll they're they've this those through to too under until up very was
    wasn't we we'd we'll we're we've were weren't what what's when when's where where's which while
    who who's whom why why's will with won't would wouldn't you you'd you'll you're you've your
    yours yourself yourselves
    """.split()
)


@dataclass(frozen=True)
class Token:
    """A word, folded, and the term that it is matched by."""

    text: str
    term: str
    is_stop_word: bool = False


class Analyzer:
    """Unicode words, lower case, accents folded, English stop words left out, Snowball stems
    (Porter 1980, revised as "English" in Snowball), character pairs for Chinese, Japanese, Korean.

    >>> Analyzer().terms("The Cafés of Montréal aren't running 注意力")
    ['cafe', 'montreal', 'run', '注意', '意力']
    """

    def tokens(self, text: str) -> list[Token]:
        """All words in order. A lone CJK character is a word; a longer run is its pairs."""
        if len(text) > SHORT or HAS_CJK(text):
            return _read(text)
        return list(_kept(text))

    def query_tokens(self, text: str) -> list[Token]:
        """What a query is matched by: its words but the stop words, unless it has no others.

        >>> [token.term for token in Analyzer().query_tokens("It")]
        ['it']
        """
        tokens = self.tokens(text)
        return [token for token in tokens if not token.is_stop_word] or tokens

    def meaningful_tokens(self, text: str) -> list[Token]:
        """What an embedding is made of: the query's words but the numbers. A year in a title would
        otherwise outweigh what the title is about.
        """
        return [token for token in self.query_tokens(text) if not token.term.isdecimal()]

    def terms(self, text: str) -> list[str]:
        """The terms of `meaningful_tokens`."""
        return [token.term for token in self.meaningful_tokens(text)]

    def key_terms(self, text: str) -> list[str]:
        """What a key can be found by: stop words too, for the film "It", and single CJK characters,
        for the query "猫".
        """
        terms = [token.term for token in self.tokens(text)]
        return terms + [char for run in re.findall(f"[{CJK}]{{2,}}", fold(text)) for char in run]

    def spans(self, text: str, terms: Container[str]) -> list[tuple[int, int]]:
        """Where a text, as it is written, has words of these of its `key_terms`: (start, end), in
        order.

        >>> Analyzer().spans("The Cafés of Montréal", {"cafe"})
        [(4, 9)]
        """
        return _merged([span for span, term in self._placed(text, singles=True) if term in terms])

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Where each of `tokens` stands in a text as it is written: (start, end).

        >>> Analyzer().token_spans("Über 注意力")
        [(0, 4), (5, 7), (6, 8)]
        """
        return [span for span, _ in self._placed(text)]

    def _placed(self, text: str, singles: bool = False) -> Iterator[tuple[Span, str]]:
        """The terms of `tokens` and where they stand; with `singles` also each CJK character."""
        folded, places = _fold_placed(text)
        for run in RUNS.finditer(folded):
            is_cjk = IS_CJK(run[0])
            for i, token in enumerate(_split(run[0])):
                first, last = run.start() + i, run.start() + i + len(token.text) - 1
                if singles and is_cjk and last > first:
                    yield places[first], folded[first]
                yield (places[first][0], places[last][1]), token.term
            if singles and is_cjk and len(run[0]) > 1:
                yield places[run.end() - 1], folded[run.end() - 1]


def _read(text: str) -> list[Token]:
    return [token for run in RUNS.findall(fold(text)) for token in _split(run)]


def _split(run: str) -> list[Token]:
    if not IS_CJK(run):
        return [_word(run)]
    pairs = [run[i : i + 2] for i in range(len(run) - 1)] or [run]
    return [Token(pair, pair) for pair in pairs]


def _merged(spans: list[Span]) -> list[Span]:
    """Overlapping character pairs as one span."""
    merged: list[Span] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def fold(text: str) -> str:
    """Lower case without accents, in one Unicode form, with one kind of apostrophe.

    >>> fold("Beyoncé’s ＤＪ")
    "beyonce's dj"
    """
    # Decomposed before as well: "𝐀" has no lower case, but the "A" that it stands for has.
    plain = unicodedata.normalize("NFKD", text.replace("’", "'")).casefold()
    return unicodedata.normalize("NFC", ACCENTS.sub("", unicodedata.normalize("NFKD", plain)))


def _fold_placed(text: str) -> tuple[str, list[Span]]:
    """`fold(text)`, and of each of its characters which of the text it was made of."""
    # A character is folded with the marks and vowels after it, which are all that can change it.
    starts = [i for i, char in enumerate(text) if not (i and _joins(char))]
    folded: list[str] = []
    places: list[Span] = []
    for start, end in pairwise([*starts, len(text)]):
        piece = _fold_piece(text[start:end])
        folded.append(piece)
        places += [(start, end)] * len(piece)
    return "".join(folded), places


@lru_cache(maxsize=1 << 14)
def _joins(char: str) -> bool:
    """Whether a character may become one with those before it."""
    first = unicodedata.normalize("NFKD", char)[0]
    return unicodedata.category(first)[0] == "M" or JAMO.match(first) is not None


_fold_piece = lru_cache(maxsize=1 << 14)(fold)


# A build reads each text many times; of more texts than are kept, each is read anew.
@lru_cache(maxsize=1 << 15)
def _kept(text: str) -> tuple[Token, ...]:
    return tuple(_read(text))


# Texts repeat their words.
@lru_cache(maxsize=1 << 17)
def _word(run: str) -> Token:
    return Token(run, stem(run)[:MAX_TERM], run in STOP_WORDS)


def stem(word: str) -> str:
    """Snowball's English stem; words in other scripts come back as they are."""
    return _stemmer().stemWord(word) if word.isascii() else word


@lru_cache(maxsize=1)
def _stemmer():  # type: ignore[no-untyped-def]
    import snowballstemmer

    return snowballstemmer.stemmer("english")


# --- which words of a text a query's terms match ---

# Of each column that has any: its own words that match, as they are written there.
Matches = dict[str, list[str]]


def matching_words(terms: Iterable[str], texts: Mapping[str, str]) -> Matches:
    """The words of each text by which the lexical head finds it, in order, each once.

    >>> matching_words({"run"}, {"title": "Running, run by run", "tags": "sport"})
    {'title': ['Running', 'run']}
    """
    wanted, analyzer = set(terms), Analyzer()
    found = {
        name: list(dict.fromkeys(text[start:end] for start, end in analyzer.spans(text, wanted)))
        for name, text in texts.items()
    }
    return {name: words for name, words in found.items() if words}


def word_spans(words: Iterable[str], text: str) -> list[tuple[int, int]]:
    """Where a text has these words of `matching_words`, or others of the same terms: (start, end).

    >>> word_spans(["注意力"], "什么是注意力机制")
    [(3, 6)]
    """
    analyzer = Analyzer()
    terms = {token.term for word in words for token in analyzer.tokens(word)}
    return analyzer.spans(text, terms)

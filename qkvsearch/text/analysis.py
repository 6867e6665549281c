"""Text to terms: what the lexical keys match and the corpus encoder has vectors for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple

from qkvsearch.text.language.languages import (
    ELIDED_IN_ENGLISH,
    ELISIONS,
    ENGLISH,
    SHORTEST_IN_ENGLISH,
    stop_words,
)
from qkvsearch.text.language.word_patterns import CJK, CODED, HAS_CJK, IS_CJK, RUNS

NUMBER = re.compile(r"\d+(?:\.\d+)*").fullmatch
ACCENTS = re.compile("[\u0300-\u036f]")
MAX_TERM = 32
# The vowels and finals of Korean syllables that are written letter by letter.
JAMO = re.compile("[\u1160-\u11ff]")
# The words of texts up to this many characters are kept, of as many texts as take some 20 MB: texts
# share their words. Character pairs are too many for that.
SHORT = 200
# Where in a text: (start, end).
Span = tuple[int, int]


class Token(NamedTuple):
    """A word, folded, and the term that it is matched by.

    also: what a text with this word can be found by besides. parts: of a word that looks like code,
    such as "c++" or "ac/dc", its bare words, which count where nobody knows the whole: see
    `known_tokens`.
    """

    text: str
    term: str
    is_stop_word: bool = False
    also: tuple[str, ...] = ()
    parts: tuple[Token, ...] = ()


@dataclass(frozen=True)
class Analyzer:
    """Unicode words, lower case, accents folded, and what the language, by Snowball's name, says:
    its stop words are left out, its articles before an apostrophe taken off ("l'amour"), its
    endings by Snowball stems (Porter 1980, revised as "English" in Snowball). Character pairs for
    Chinese, Japanese, Korean. Words that look like code, such as C++, AC/DC, 3.5mm or .NET, stay
    whole. A language that nobody knows has neither stop words nor stems.

    >>> Analyzer().terms("The Cafés of Montréal aren't running 注意力")
    ['cafe', 'montreal', 'run', '注意', '意力']
    >>> Analyzer("german").terms("Die Häuser des Glücks in C++")
    ['haus', 'gluck', 'c++']
    """

    language: str = ENGLISH

    def tokens(self, text: str) -> list[Token]:
        """All words in order. A lone CJK character is a word; a longer run is its pairs."""
        if len(text) > SHORT or HAS_CJK(text):
            return list(_last_read(text, self.language))
        return list(_kept(text, self.language))

    def query_tokens(self, text: str) -> list[Token]:
        """What a query is matched by: its words but the stop words, unless it has no others.

        >>> [token.term for token in Analyzer().query_tokens("It")]
        ['it']
        """
        return list(_last_told(text, self.language))

    def meaningful_tokens(self, text: str) -> list[Token]:
        """What an embedding is made of: the query's words but the numbers. A year in a title would
        otherwise outweigh what the title is about.
        """
        return list(_last_meant(text, self.language))

    def terms(self, text: str) -> list[str]:
        """The terms of `meaningful_tokens`."""
        return [token.term for token in self.meaningful_tokens(text)]

    def key_terms(self, text: str) -> list[str]:
        """What a key can be found by: stop words too, for the film "It"; single CJK characters, for
        the query "猫"; the bare words of code; and a word as it is typed without accents, where
        these change its stem.

        >>> Analyzer().key_terms("C++, AC/DC")
        ['c++', 'c', 'ac/dc', 'ac', 'dc']
        """
        terms: list[str] = []
        for token in self.tokens(text):
            terms.append(token.term)
            terms += token.also
        if text.isascii():
            return terms
        return terms + [char for run in re.findall(f"[{CJK}]{{2,}}", fold(text)) for char in run]

    def spans(self, text: str, terms: Container[str]) -> list[Span]:
        """Where a text, as it is written, has words of these of its `key_terms`: (start, end), in
        order.

        >>> Analyzer().spans("The Cafés of Montréal", {"cafe"})
        [(4, 9)]
        """
        return _merged([span for span, term in self._placed(text, every=True) if term in terms])

    def token_spans(self, text: str) -> list[Span]:
        """Where each of `tokens` stands in a text as it is written: (start, end).

        >>> Analyzer().token_spans("Über 注意力")
        [(0, 4), (5, 7), (6, 8)]
        """
        if text.isascii():  # folded, each character is where it was
            runs = CODED.finditer(text.lower())
            return [(run.start() + _elided(run[0], self.language), run.end()) for run in runs]
        return [span for span, _ in self._placed(text)]

    def _placed(self, text: str, every: bool = False) -> Iterator[tuple[Span, str]]:
        """The terms of `tokens` and where they stand; `every` one of `key_terms`."""
        read, places = _fold_placed(text, _normal(self.language))
        for run in CODED.finditer(read):
            for begin, end, token in _split(run[0], self.language):
                first, last = run.start() + begin, run.start() + end
                yield (places[first][0], places[last - 1][1]), token.term
                if every:
                    for a, b, term in _others(read[first:last], token, self.language):
                        yield (places[first + a][0], places[first + b - 1][1]), term


def telling(tokens: Sequence[Token]) -> list[Token]:
    """Those that are no stop words, or all where there are no others."""
    return [token for token in tokens if not token.is_stop_word] or list(tokens)


def known_tokens(tokens: Iterable[Token], is_known: Callable[[str], bool]) -> list[Token]:
    """A query's tokens with, in the place of code whose whole term nobody knows, its bare words;
    but for single letters, which mean anything: C++ is not found by the C of C major.

    >>> tokens = Analyzer().query_tokens("AC/DC in C++")
    >>> [token.term for token in known_tokens(tokens, {"in"}.__contains__)]
    ['ac', 'dc', 'c++']
    """
    return [found for token in tokens for found in _resolved(token, is_known)]


def _resolved(token: Token, is_known: Callable[[str], bool]) -> Sequence[Token]:
    if not token.parts:
        return [token]
    parts = [part for part in telling(token.parts) if len(part.text) > 1]
    return parts if parts and not is_known(token.term) else [token]


def words(text: str) -> list[str]:
    """The words of a text, folded, whatever its language.

    >>> words("L’Été, là-bas")
    ["l'ete", 'la', 'bas']
    """
    return RUNS.findall(fold(text))


def _read(text: str, language: str) -> list[Token]:
    tokens: list[Token] = []
    for run in CODED.findall(_normal(language)(text)):
        if not run.isascii() and IS_CJK(run):
            tokens += [Token(pair, pair) for pair in _pairs(run)]
        else:
            tokens.append(_word(run, language))
    return tokens


def _split(run: str, language: str) -> list[tuple[int, int, Token]]:
    """The tokens of a run, and where in it each begins and ends."""
    if IS_CJK(run):
        return [(i, i + len(pair), Token(pair, pair)) for i, pair in enumerate(_pairs(run))]
    return [(_elided(run, language), len(run), _word(run, language))]


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


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
    if text.isascii():
        return text.lower()
    # Decomposed before as well: "𝐀" has no lower case, but the "A" that it stands for has.
    plain = unicodedata.normalize("NFKD", text.replace("’", "'")).casefold()
    return unicodedata.normalize("NFC", ACCENTS.sub("", unicodedata.normalize("NFKD", plain)))


def lower(text: str) -> str:
    """As `fold`, with the accents that are part of a letter, which stems go by.

    >>> lower("Informações")
    'informações'
    """
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.replace("’", "'")).casefold()
    return unicodedata.normalize("NFC", ACCENTS.sub("", unicodedata.normalize("NFKC", plain)))


def _normal(language: str) -> Callable[[str], str]:
    """English stems go by no accents."""
    return fold if language == ENGLISH else lower


def _fold_placed(text: str, normal: Callable[[str], str]) -> tuple[str, list[Span]]:
    """The `normal` text, and of each of its characters which of the text it was made of."""
    if text.isascii():
        return normal(text), [(i, i + 1) for i in range(len(text))]
    # A character is folded with the marks and vowels after it, which are all that can change it.
    starts = [i for i, char in enumerate(text) if not (i and _joins(char))]
    folded: list[str] = []
    places: list[Span] = []
    for start, end in pairwise([*starts, len(text)]):
        piece = _normal_piece(text[start:end], normal)
        folded.append(piece)
        places += [(start, end)] * len(piece)
    return "".join(folded), places


@lru_cache(maxsize=1 << 14)
def _joins(char: str) -> bool:
    """Whether a character may become one with those before it."""
    first = unicodedata.normalize("NFKD", char)[0]
    return unicodedata.category(first)[0] == "M" or JAMO.match(first) is not None


@lru_cache(maxsize=1 << 14)
def _normal_piece(piece: str, normal: Callable[[str], str]) -> str:
    return normal(piece)


# A build reads each text many times; of more texts than are kept, each is read anew.
@lru_cache(maxsize=1 << 15)
def _kept(text: str, language: str) -> tuple[Token, ...]:
    return tuple(_read(text, language))


# A long query is read by each head.
@lru_cache(maxsize=64)
def _last_read(text: str, language: str) -> tuple[Token, ...]:
    return tuple(_read(text, language))


# And by each encoder.
@lru_cache(maxsize=64)
def _last_told(text: str, language: str) -> tuple[Token, ...]:
    return tuple(telling(Analyzer(language).tokens(text)))


@lru_cache(maxsize=64)
def _last_meant(text: str, language: str) -> tuple[Token, ...]:
    return tuple(token for token in _last_told(text, language) if not NUMBER(token.term))


# Texts repeat their words.
@lru_cache(maxsize=1 << 17)
def _word(run: str, language: str) -> Token:
    """The token of a run that is no CJK, without what is elided."""
    if run.isascii() and run.isalpha() and run.islower():  # as most are: nothing to fold
        return Token(run, _term(run, language), run in _folded_stop_words(language))
    word = run[_elided(run, language) :]
    text = fold(word)
    if RUNS.fullmatch(word):
        term = _term(word, language)
        plain = term if text == word else _term(text, language)
        also: tuple[str, ...] = (plain,) if plain != term else ()
        return Token(text, term, text in _folded_stop_words(language), also)
    parts = tuple(token for part in RUNS.findall(word) for _, _, token in _split(part, language))
    # "And/or" says nothing, but "C++" does where "c" is an article.
    is_empty = all(part.is_stop_word and len(part.text) > 1 for part in parts)
    also = tuple(term for part in parts for term in (part.term, *part.also))
    return Token(text, text[:MAX_TERM], is_empty, also, parts)


def _elided(run: str, language: str) -> int:
    """How many characters of a word are an article or the like before an apostrophe."""
    if "'" not in run:
        return 0
    first, _, rest = run.partition("'")
    if not rest or first not in ELISIONS.get(language, ()):
        return 0
    if language == ENGLISH and (
        rest[0] not in ELIDED_IN_ENGLISH or len(rest) < SHORTEST_IN_ENGLISH
    ):
        return 0
    return len(first) + 1


def _others(word: str, token: Token, language: str) -> Iterator[tuple[int, int, str]]:
    """Those of `key_terms` that are not the token's own, and where in the word they stand."""
    if IS_CJK(word):
        yield from ((i, i + 1, char) for i, char in enumerate(word) if len(word) > 1)
    elif not token.parts:
        yield from ((0, len(word), term) for term in token.also)
    else:
        for run in RUNS.finditer(word):
            for first, last, part in _split(run[0], language):
                for term in (part.term, *part.also):
                    yield run.start() + first, run.start() + last, term


@lru_cache(maxsize=8)
def _folded_stop_words(language: str) -> frozenset[str]:
    return frozenset(map(fold, stop_words(language)))


def _term(word: str, language: str) -> str:
    # Of a word that is all ending, Arabic stems leave nothing.
    found = stem(word, language) or word
    return (found if found.isascii() and found.islower() else fold(found))[:MAX_TERM]


def stem(word: str, language: str = ENGLISH) -> str:
    """Snowball's stem; words in other scripts than the language's come back as they are, and so do
    all of a language that it has no stems for.

    >>> stem("running"), stem("informações", "portuguese"), stem("running", "klingon")
    ('run', 'inform', 'running')
    """
    if language == ENGLISH and not word.isascii():
        return word
    stemmer = _stemmer(language)
    if stemmer is None:
        return word
    try:
        with _STEMMING:
            return str(stemmer.stemWord(word))
    except UnicodeEncodeError:  # half of a pair of surrogates, which is no letter
        return word


# A stemmer keeps the word that it is at in itself, and engines are asked by several threads.
_STEMMING = Lock()


@lru_cache(maxsize=8)
def _stemmer(language: str) -> Any:
    import Stemmer

    return Stemmer.Stemmer(language, 0) if language in Stemmer.algorithms() else None


# --- which words of a text a query's terms match ---

# Of each column that has any: its own words that match, as they are written there.
Matches = dict[str, list[str]]


def matching_words(
    terms: Iterable[str], texts: Mapping[str, str], analyzer: Analyzer | None = None
) -> Matches:
    """The words of each text by which the lexical head finds it, in order, each once.

    >>> matching_words({"run"}, {"title": "Running, run by run", "tags": "sport"})
    {'title': ['Running', 'run']}
    """
    wanted, analyzer = set(terms), analyzer or Analyzer()
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

"""Text analysis: split texts into words, and words into the terms that search matches."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from qkvsearch._utils.caching import cached_property
from qkvsearch._utils.folding import FRACTIONS, IS_UNSEEN, fold, is_mixed, lower
from qkvsearch._utils.forks import fork_lock
from qkvsearch._utils.scripts import is_doubled_e
from qkvsearch._utils.validation import require
from qkvsearch.text.languages import (
    ELIDED_IN_ENGLISH,
    ELISIONS,
    ENGLISH,
    SHORTEST_IN_ENGLISH,
    stop_words,
)

# --- what is a word ---

# Han, kana and Hangul are written without spaces between words (or, for Korean, with endings
# attached), so pairs of neighbouring characters stand in for words. The sign that repeats a
# character (人々) and the Chinese zero (二〇二〇) are characters as well.
CJK = (
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003134f"
)
# Thai, Lao, Burmese and Khmer, too. Their letters are taken together with their vowels.
SOUTHEAST_ASIAN = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf"
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\u1780-\u17d3\u17d7\u17dc\u17dd"
)
UNSPACED = CJK + SOUTHEAST_ASIAN
# The vowel signs of Hebrew, Arabic, Tibetan and the scripts of India are marks, not letters, and
# belong to the word.
MARKS = (
    "\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u0900-\u0963\u0966-\u0dff\u0f18\u0f19\u0f35\u0f37\u0f39\u0f3e\u0f3f\u0f71-\u0fbc"
)
LETTER, ASCII_LETTER = rf"(?:(?![{UNSPACED}_])[\w{MARKS}])", r"[^\W_]"
# A letter that is no digit.
ALPHA, ASCII_ALPHA = rf"(?:(?![{UNSPACED}_\d])[\w{MARKS}])", r"[^\W\d_]"

# The expressions below are in verbose form. `_pattern` fills {letter} and the like in; {3} is a
# number of times, and a + behind another quantifier gives nothing back.
WORD = r"{letter}++(?:'{letter}++)*"
UNSPACED_RUN = f"[{UNSPACED}]+"
# E.T. and U.S.A. are one word.
INITIALS = r"(?<![\w.']){alpha}(?:\.{alpha})++(?!{letter})\.?"
# What looks like code is one word with its signs. A full stop after a word, or before a space,
# belongs to no word.
SIGNS = r"""
    (?:
        (?:\+\++|\#)(?!{letter})         # C++ and C#
    |
        (?=[/&])(?<!{latin}{5})          # AC/DC, R&B, 24/7: the sides are short
        (?:[/&]{letter}{1,4}+){1,3}+
        (?![/&]?{letter}|\+\+|\#)
    |
        (?=\.)(?<=\d)                    # 1.2.3 and 1.2.3rc
        (?:\.\d++){1,7}+{alpha}{0,4}+
        (?!{letter})
    )?
"""
# .NET
WITH_FIRST_STOP = r"(?<![\w.])\.{alpha}{letter}*+"

# A number, but no part of 1.2.3 or of 1,2,3.
NUMERAL = r"""
    (?:
        (?<!\d[.,'])
        (?:
            [1-9]\d{0,2}
            (?:
                (?:,\d{3})++(?:\.\d++)?+   # 1,000 and 1,299.50
            |
                (?:\.\d{3})++(?:,\d\d?+)?+ # 1.000 and 1.299,50
            |
                (?:'\d{3})++               # 1'000
            |
                (?:[ ]000)++               # 1 000, while 1 200 may be two numbers
            )
        |
            \d++(?:\.\d++|,\d\d?+)        # 2.5 and 2,5
        |
            (?<![\w.])\.\d++             # .5
        )
        (?![.,']?\d)
    |
        \d++(?![.,']?\d)
    )
"""
# Where a number with its letters ends. In 4x20mm a further number follows the x.
END = r"(?:(?=x\d)|(?!['./&]?{letter}|\+\+|\#))"
# The m of 25m, and the cm² of 25cm². Ordinals and decades are words of their own: 19th, 90s.
GLUED_UNIT = r"(?!(?:st|nd|rd|th|s)(?!{letter})){alpha}{1,12}+[23]?+{end}"
# The m of 25 m and 25-m. The x of 4 x 20 is none.
SPACED_UNIT = r"[ -](?!x[ ]?\d){alpha}{1,3}+[23]?+{end}"
# The B of B6 and B-6, and of B 6 where that is no 6 mm. The x of x2 is none.
BEFORE_NUMERAL = r"""
    (?!x[ -]?\d)
    (?:
        {alpha}{1,12}+-?+
    |
        {alpha}{1,3}+[ ](?={numeral}(?!{spaced_unit}))
    )
"""
# A number and the letters beside it are one run: all that touch it, and up to three with a blank or
# a hyphen between.
MEASURE = r"""
    {numeral}
    (?:
        (?=x\d)                  # the 4 of 4x20
    |
        {alpha}(?=\d)            # the 5W of 5W30, but not the m of 25m2
        (?!(?<=[mм])[23]{end})
    |
        {glued_unit}
    |
        {spaced_unit}
    |
        {end}
    )
|
    (?<=\d)x(?=\d)               # the x of 4x20
|
    {before_numeral}{numeral}{end}
"""
# What the expressions above are made of. A part comes before those that it has itself.
PARTS = {
    "before_numeral": BEFORE_NUMERAL,
    "glued_unit": GLUED_UNIT,
    "spaced_unit": SPACED_UNIT,
    "numeral": NUMERAL,
    "end": END,
}
# The letters that they are about, in texts of ASCII alone and in any text. Words around a sign are
# short in the scripts that have spaces.
ASCII_LETTERS = {"letter": ASCII_LETTER, "alpha": ASCII_ALPHA, "latin": ASCII_LETTER}
ANY_LETTERS = {"letter": LETTER, "alpha": ALPHA, "latin": rf"[^\W{UNSPACED}_]"}

# An emoji is one run, with all that joiners or flags make one of.
PICTURES = (
    "\u203c\u2049\u2194-\u2199\u21a9\u21aa\u231a-\u23ff\u25fb-\u25fe\u2600-\u27bf\u2b05-\u2b55"
    "\u3030\u303d\U0001f000-\U0001f1e5\U0001f200-\U0001faff"
)
FLAG, KEY = "[\U0001f1e6-\U0001f1ff]{2}", "[0-9#*]\u20e3"
ONE_EMOJI = f"(?:{FLAG}|{KEY}|[{PICTURES}][\U000e0020-\U000e007f]*+)"
EMOJI = f"{ONE_EMOJI}(?:\u200d{ONE_EMOJI})*+"


class TextPattern:
    """A regular expression and its shorter form for ASCII texts.

    Most texts are ASCII. Compiling the classes of all other scripts takes a good part of the time
    of a search, so that happens with the first text that needs them.
    """

    def __init__(self, for_ascii: str, for_any: str) -> None:
        self._ascii, self._source = re.compile(for_ascii, re.VERBOSE), for_any

    @cached_property
    def _any(self) -> re.Pattern[str]:
        return re.compile(self._source, re.VERBOSE)

    def of(self, text: str) -> re.Pattern[str]:
        """Return the compiled expression for a text."""
        return self._ascii if text.isascii() else self._any

    def search(self, text: str) -> re.Match[str] | None:
        return self.of(text).search(text)

    def match(self, text: str) -> re.Match[str] | None:
        return self.of(text).match(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self.of(text).fullmatch(text)

    def findall(self, text: str) -> list[str]:
        return self.of(text).findall(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self.of(text).finditer(text)


def _pattern(*alternatives: str, in_other_scripts: Sequence[str] = ()) -> TextPattern:
    """Return the pattern of what is in any of the expressions above.

    in_other_scripts: what is looked for first in texts with other characters than those of ASCII.
    """
    for_ascii = [_filled(each, ASCII_LETTERS) for each in alternatives]
    for_any = [*in_other_scripts, *(_filled(each, ANY_LETTERS) for each in alternatives)]
    return TextPattern("|".join(for_ascii), "|".join(for_any))


def _filled(expression: str, letters: dict[str, str]) -> str:
    """Return an expression with all that it consists of."""
    for name, part in (PARTS | letters).items():
        expression = expression.replace(f"{{{name}}}", part)
    return expression


class _CodedPattern(TextPattern):
    """The runs of a text. Most texts have no digit, and looking for numbers takes a while."""

    def __init__(self) -> None:
        others = [EMOJI, UNSPACED_RUN]
        words = [WORD + SIGNS, WITH_FIRST_STOP]
        self._numbered = _pattern(INITIALS, MEASURE, *words, in_other_scripts=others)
        self._without_numbers = _pattern(INITIALS, *words, in_other_scripts=others)

    def of(self, text: str) -> re.Pattern[str]:
        return (self._numbered if DIGIT(text) else self._without_numbers).of(text)


RUNS, CODED = _pattern(WORD, in_other_scripts=[UNSPACED_RUN]), _CodedPattern()
MEASURES = _pattern(MEASURE)
HAS_CJK = TextPattern("(?!)", f"[{CJK}]").search
_UNSPACED = TextPattern("(?!)", f"[{UNSPACED}]")
IS_UNSPACED, HAS_UNSPACED = _UNSPACED.match, _UNSPACED.search
# A digit, or what is folded to one: ², ½, ①, ㎡.
HAS_DIGIT = TextPattern(
    r"\d",
    r"[\d\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2089\u2150-\u2189\u2460-\u24ff\u3200-\u33ff"
    r"\U0001f100-\U0001f1ff]",
).search
# A word in a script with spaces, with the signs of its vowels.
IS_SPACED_WORD = TextPattern("[a-zA-Z]+", rf"(?:(?![{UNSPACED}\d_])[\w{MARKS}])+").fullmatch

# A letter of Thai and the like with its vowels: before it, above and below it, and behind it. A
# stacked consonant of Burmese or Khmer is a sign of the one above.
_SIGNS = (
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece"
    "\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074"
    "\u1082-\u108d\u108f\u109a-\u109d\u17b4-\u17d3\u17dd"
)
_UNIT = TextPattern(
    ".",
    rf"[\u0e40-\u0e44\u0ec0-\u0ec4]?.(?:[\u1039\u17d2].|[{_SIGNS}])*"
    r"[\u0e30\u0e32\u0e45\u0eb0\u0eb2]?",
)
_HAS_SOUTHEAST_ASIAN = TextPattern("(?!)", f"[{SOUTHEAST_ASIAN}]").search


def units(run: str) -> list[str]:
    """Return the units of a folded run in a script without spaces: characters, or letters of Thai
    and the like with their vowels.

    >>> units("注意力"), units("กาแฟ")
    (['注', '意', '力'], ['กา', 'แฟ'])
    """
    return _UNIT.findall(run) if _HAS_SOUTHEAST_ASIAN(run) else list(run)


def is_unit(term: str) -> bool:
    """Return whether a term is a single unit, which stands for all pairs that have it."""
    return HAS_UNSPACED(term) is not None and len(units(term)) == 1


# --- tokens and terms ---

# Whether a term says what a text is about.
has_topic = re.compile(
    r"""
    (?![\d.]+\u20e3?$)    # no number, such as 2.5, and not the emoji of one
    .*\w                  # no other emoji, and no sign
    """,
    re.VERBOSE,
).match
NUMBER = re.compile(r"\d+(?:\.\d+)*").fullmatch
# A number as it is typed in a run, with the letters before or behind it.
NUMBER_IN_RUN = re.compile(r"(?P<before>\D*?)(?P<number>\.?\d(?:[\d.,' ]*\d)?)(?P<behind>\D.*)?")
DIGIT = re.compile(r"\d").search
ZERO_DECIMALS = re.compile(r"\.0+$")
# The part of a number with signs between its thousands: of 1.299,50, but not of 3.14159.
IN_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?P<sign>[.,' ])\d{3}(?:(?P=sign)\d{3})*(?!\d)")
# The article in Arabic, with "and" or a preposition before it, as Lucene's `ArabicStemmer` removes
# it. Snowball's stemmer leaves it on short words, and takes the first letter of other words for a
# preposition. "God" is not the article and "to him".
ARABIC_ARTICLE = re.compile(r"(?!\w?الله$)(?:ال(?=\w\w)|(?:[وبكف]ال|لل)(?=\w{3}))").match
MAX_TERM = 32
# The vowels and finals of Korean syllables that are written letter by letter.
JAMO = re.compile("[\u1160-\u11ff]")
# The tokens of texts up to this many characters are cached (20 MB at most), since titles and tags
# are analyzed several times. Texts of character pairs have too many tokens for that.
MAX_CACHED_TEXT = 200
# (start, end) in a text.
Span = tuple[int, int]


class Token(NamedTuple):
    """A folded word and its term.

    variants: further terms under which a text with this word is indexed; of a number, the number
    with the letters beside it, such as "25m". subtokens: the bare words of a word that looks like
    code, such as "ac/dc"; they replace it in a query if no text has the whole (see `resolve_code`).
    topic: the term that encoders learn in place of `term`: of the letters in MP3, "mp3".
    """

    text: str
    term: str
    is_stop_word: bool = False
    variants: tuple[str, ...] = ()
    subtokens: tuple[Token, ...] = ()
    topic: str = ""


@dataclass(frozen=True)
class Analyzer:
    """An analyzer of texts in one language, given by Snowball's name.

    Words are runs of Unicode letters in lower case without accents. The language determines the
    stop words, the elided articles that are removed ("l'amour") and the stemmer (Snowball; for
    English Porter 1980, revised). Text in a script without spaces, and Korean, becomes pairs of
    its `units`. A number and the letters that it touches are two words, so that 25m, 25 m and 25-m
    are the same. Words that look like code, such as C++, AC/DC or .NET, stay whole; E.T. is the
    word "et". An emoji is a word. An unknown language has neither stop words nor stems.

    >>> Analyzer().terms("The Cafés of Montréal aren't running 注意力")
    ['cafe', 'montreal', 'run', '注意', '意力']
    >>> Analyzer("german").terms("Die Häuser des Glücks in C++")
    ['haus', 'gluck', 'c++']
    >>> [token.text for token in Analyzer().tokens("2,5m, 1,000 pcs")]
    ['2.5', 'm', '1000', 'pcs']
    """

    language: str = ENGLISH

    def tokens(self, text: str) -> list[Token]:
        """Return all words in order. A single unit of a script without spaces is a word; a longer
        run is pairs.

        Raises `DataError` for what is no text, as all methods do.
        """
        _check_text(text)
        if len(text) > MAX_CACHED_TEXT or (not text.isascii() and HAS_UNSPACED(text)):
            return list(_recent_tokens(text, self.language))
        return list(_cached_tokens(text, self.language))

    def term(self, word: str) -> str:
        """Return the term of a folded word in a script with spaces.

        >>> Analyzer().term("whiteboards")
        'whiteboard'
        """
        return _word(word, self.language).term

    def query_tokens(self, text: str) -> list[Token]:
        """Return the words of a query without stop words, unless it has no others.

        >>> [token.term for token in Analyzer().query_tokens("It")]
        ['it']
        """
        return without_stop_words(self.tokens(text))

    def meaningful_tokens(self, text: str) -> list[Token]:
        """Return `query_tokens` without numbers, which would outweigh the topic of a title, and
        without emoji.
        """
        return with_topics(self.query_tokens(text))

    def terms(self, text: str) -> list[str]:
        """Return the terms of `meaningful_tokens`."""
        return [token.term for token in self.meaningful_tokens(text)]

    def key_terms(self, text: str) -> list[str]:
        """Return the terms under which a text is indexed.

        They include stop words (for the film "It"), single units (for the query "猫"), the bare
        words of code, numbers with the letters beside them, and stems of words typed without
        accents or apostrophes, where these differ.

        >>> Analyzer().key_terms("C++, AC/DC, 25 m")
        ['c++', 'c', 'ac/dc', 'ac', 'dc', '25', '25m', 'm']
        """
        return self.key_terms_of(text, self.tokens(text))

    def key_terms_of(self, text: str, tokens: Iterable[Token]) -> list[str]:
        """Return `key_terms` of a text whose `tokens` are known."""
        terms: list[str] = []
        for token in tokens:
            terms.append(token.term)
            terms += token.variants
        if not text.isascii():
            for run in re.findall(f"[{UNSPACED}]{{2,}}", fold(text)):
                of_run = units(run)
                terms += of_run if len(of_run) > 1 else []
        return terms

    def spans(self, text: str, terms: Container[str]) -> list[Span]:
        """Return where the words with these `key_terms` are in the original text, in order.

        >>> Analyzer().spans("The Cafés of Montréal", {"cafe"})
        [(4, 9)]
        """
        _check_text(text)
        return _merged([span for span, term in self._located(text, all_keys=True) if term in terms])

    def token_spans(self, text: str) -> list[Span]:
        """Return where each of `tokens` is in the original text.

        >>> Analyzer().token_spans("Über 注意力")
        [(0, 4), (5, 7), (6, 8)]
        """
        _check_text(text)
        if text.isascii():  # folding keeps the position of each character
            return [
                (run.start() + start, run.start() + end)
                for run in CODED.finditer(fold(text))
                for start, end, _ in _split(run[0], self.language)
            ]
        folded, spans = _fold_with_spans(text, normalizer(self.language))
        return [
            (spans[run.start() + start][0], spans[run.start() + end - 1][1])
            for run in CODED.finditer(folded)
            for start, end, _ in _split(run[0], self.language)
        ]

    def _located(self, text: str, all_keys: bool = False) -> Iterator[tuple[Span, str]]:
        """Yield the terms of `tokens`, or all of `key_terms`, with their spans."""
        folded, spans = _fold_with_spans(text, normalizer(self.language))
        for run in CODED.finditer(folded):
            for begin, end, token in _split(run[0], self.language):
                start, stop = run.start() + begin, run.start() + end
                yield (spans[start][0], spans[stop - 1][1]), token.term
                if all_keys:
                    for a, b, term in _further_keys(folded[start:stop], token, self.language):
                        yield (spans[start + a][0], spans[start + b - 1][1]), term


def _check_text(text: Any) -> None:
    if not isinstance(text, str):
        require(False, "text", text, "a text")


def without_stop_words(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens that are no stop words, or all if there are no others."""
    return [token for token in tokens if not token.is_stop_word] or list(tokens)


def with_topics(tokens: Iterable[Token]) -> list[Token]:
    """Return the tokens that encoders learn: neither numbers nor emoji, and MP3 as one word.

    >>> [token.term for token in with_topics(Analyzer().tokens("MP3 in 25 m, 500 GB"))]
    ['mp3', 'in', '25m', 'gb']
    """
    topics = [token._replace(term=token.topic) if token.topic else token for token in tokens]
    return [token for token in topics if has_topic(token.term)]


def resolve_code(tokens: Iterable[Token], is_known: Callable[[str], bool]) -> list[Token]:
    """Replace each code-like token whose term is unknown by its bare words.

    Single letters are dropped, since they are ambiguous: "C++" must not match the C of C major.

    >>> tokens = Analyzer().query_tokens("AC/DC in C++")
    >>> [token.term for token in resolve_code(tokens, {"in"}.__contains__)]
    ['ac', 'dc', 'c++']
    """
    resolved: list[Token] = []
    for token in tokens:
        if not token.subtokens:
            resolved.append(token)
            continue
        bare = [word for word in without_stop_words(token.subtokens) if len(word.text) > 1]
        resolved += bare if bare and not is_known(token.term) else [token]
    return resolved


def words(text: str) -> list[str]:
    """Return the folded words of a text in any language.

    >>> words("L’Été, là-bas")
    ["l'ete", 'la', 'bas']
    """
    return RUNS.findall(fold(text))


def _tokenize(text: str, language: str) -> tuple[Token, ...]:
    tokens: list[Token] = []
    for run in CODED.findall(normalizer(language)(text)):
        if not run.isascii() and IS_UNSPACED(run):
            tokens += [Token(pair, pair) for pair in _pairs(run)]
        elif DIGIT(run):
            tokens += [token for _, _, token in _measure(run, language)]
        else:
            tokens.append(_word(run, language))
    return tuple(tokens)


def _split(run: str, language: str) -> Sequence[tuple[int, int, Token]]:
    """Return the tokens of a run of letters, with start and end in it."""
    if IS_UNSPACED(run):
        starts = list(accumulate(map(len, units(run)), initial=0))
        pairs = _pairs(run)
        begins = zip(starts, pairs, strict=False)
        return [(start, start + len(pair), Token(pair, pair)) for start, pair in begins]
    if DIGIT(run):
        return _measure(run, language)
    return [(_elided(run, language), len(run), _word(run, language))]


@lru_cache(maxsize=1 << 15)
def _measure(run: str, language: str) -> Sequence[tuple[int, int, Token]]:
    """Return the tokens of a run with a digit, with start and end in it: a number and the letters
    before or behind it, or else one word.

    The number is indexed with these letters as well, but for a stop word: "in 1999" is no measure.

    >>> [token[:2] + token.variants for _, _, token in _measure("2,5 m", "english")]
    [('2.5', '2.5', '2.5m'), ('m', 'm')]
    """
    parts = NUMBER_IN_RUN.fullmatch(run) if MEASURES.fullmatch(run) else None
    if parts is None:
        return [(_elided(run, language), len(run), _word(run, language))]
    start, end = parts.span("number")
    number = _plain_number(parts["number"])
    before, behind = parts["before"].rstrip(" -"), (parts["behind"] or "").lstrip(" -")
    letters = before or behind
    if not letters:
        return [(start, end, Token(number, number[:MAX_TERM]))]
    word = _word(letters, language)
    # In 5a the letter is no article.
    is_stop_word = word.is_stop_word and " " in run
    wholes = () if is_stop_word else (f"{before}{number}{behind}"[:MAX_TERM],)
    token = Token(number, number[:MAX_TERM], variants=wholes)
    place = (0, len(before)) if before else (len(run) - len(behind), len(run))
    # One letter, or a word such as the inches of 11in, means nothing without the number, and MP3
    # is a name.
    is_one_name = len(letters) == 1 or word.is_stop_word or run[:start] == before != ""
    topic = wholes[0] if is_one_name and wholes else ""
    letters_token = word._replace(is_stop_word=is_stop_word, topic=topic)
    both = [(start, end, token), (*place, letters_token)]
    return sorted(both, key=lambda part: part[0])


def _plain_number(typed: str) -> str:
    """Return a number without signs between thousands, with a decimal point and digits before it.

    Three digits behind a comma or a point are thousands, except behind a zero.

    >>> [_plain_number(typed) for typed in ("1,000", "1.000", "1 000", "2,5", "1.299,50", "0.125")]
    ['1000', '1000', '1000', '2.5', '1299.50', '0.125']
    >>> [_plain_number(typed) for typed in ("2.0", "3.10", "3.14159", ".5")]
    ['2', '3.10', '3.14159', '0.5']
    """
    thousands = IN_THOUSANDS.match(typed)
    end = thousands.end() if thousands else 0
    whole = re.sub(r"\D", "", typed[:end])
    plain = whole + typed[end:].replace(",", ".")
    if plain.startswith("."):
        plain = f"0{plain}"
    return ZERO_DECIMALS.sub("", plain)


def _pairs(run: str) -> list[str]:
    return list(map("".join, pairwise(units(run)))) or [run]


def _merged(spans: list[Span]) -> list[Span]:
    """Merge the spans of overlapping character pairs."""
    merged: list[Span] = []
    for start, end in spans:
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def normalizer(language: str) -> Callable[[str], str]:
    """Return `fold` or `lower`; the English stemmer needs no accents."""
    return fold if language == ENGLISH else lower


def _fold_with_spans(text: str, normalize: Callable[[str], str]) -> tuple[str, list[Span]]:
    """Normalize a text, and return for each resulting character its span in the original."""
    folded: list[str] = []
    spans: list[Span] = []
    done = 0
    for other in _NOT_ASCII.finditer(text):
        start, end = other.span()
        _fold_ascii(text, done, start, normalize, folded, spans)
        for begin, stop in _characters(text, start, end):
            piece = normalize(text[begin:stop])
            folded.append(piece)
            spans += [(begin, stop)] * len(piece)
        done = end
    _fold_ascii(text, done, len(text), normalize, folded, spans)
    return "".join(folded), spans


# Signs that follow a character can change how it is folded, and none of them is ASCII.
_NOT_ASCII = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]+")


def _fold_ascii(
    text: str,
    start: int,
    end: int,
    normalize: Callable[[str], str],
    folded: list[str],
    spans: list[Span],
) -> None:
    """Add text[start:end], whose characters are folded one by one."""
    folded.append(normalize(text[start:end]))
    spans.extend(zip(range(start, end), range(start + 1, end + 1), strict=True))


def _characters(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the spans of characters with the marks, vowels and joiners that follow them."""
    starts = [i for i in range(start, end) if i == start or not _follows(text, i)]
    return pairwise([*starts, end])


def _follows(text: str, i: int) -> bool:
    """Return whether the character at i is folded together with the one before it."""
    is_part_of_number = text[i] in FRACTIONS and is_mixed(text, i)
    return is_part_of_number or _joins(text[i]) or is_doubled_e(text, i)


@lru_cache(maxsize=1 << 14)
def _joins(char: str) -> bool:
    """Return whether a character may combine with those before it."""
    first = unicodedata.normalize("NFKD", char)[0]
    is_mark = unicodedata.category(first)[0] == "M" or JAMO.match(first) is not None
    return is_mark or IS_UNSEEN(char) is not None


# A build analyzes each text several times.
_cached_tokens = lru_cache(maxsize=1 << 15)(_tokenize)
# Each head analyzes a long query.
_recent_tokens = lru_cache(maxsize=64)(_tokenize)


# Words repeat across texts.
@lru_cache(maxsize=1 << 17)
def _word(run: str, language: str) -> Token:
    """Return the token of a run in a script with spaces, without an elided article."""
    if run.isascii() and run.isalpha() and run.islower():  # the common case: nothing to fold
        return Token(run, _term(run, language), run in _folded_stop_words(language))
    word = run[_elided(run, language) :]
    text = fold(word)
    if word[1:2] == "." and word[0].isalpha():
        return _initials(text, language)
    if RUNS.fullmatch(word):
        term = _term(word, language)
        unaccented = term if text == word else _term(text, language)
        # O'Neill is also typed as oneill, and L'Oréal, of which "l'" is elided, as loreal.
        joined = fold(run).replace("'", "")
        variants = dict.fromkeys(
            [unaccented, _term(joined, language)] if "'" in run else [unaccented]
        )
        variants.pop(term, None)
        return Token(text, term, text in _folded_stop_words(language), tuple(variants))
    subtokens: list[Token] = []
    for bare in RUNS.findall(word):
        subtokens += [token for _, _, token in _split(bare, language)]
    if not subtokens:
        return Token(text, text[:MAX_TERM])  # an emoji
    code_variants: list[str] = []
    for token in subtokens:
        code_variants += [token.term, *token.variants]
    # "and/or" is a stop word, but "C++" is not, even where "c" is an article.
    is_stop_word = all(token.is_stop_word and len(token.text) > 1 for token in subtokens)
    return Token(text, text[:MAX_TERM], is_stop_word, tuple(code_variants), tuple(subtokens))


def _initials(text: str, language: str) -> Token:
    """Return the token of initials, such as U.S.A.; it is indexed with its dots, too."""
    dotted = text.strip(".")
    bare = text.replace(".", "")
    # "i.t." must not match the "it" of every text.
    if bare in _folded_stop_words(language):
        bare = dotted
    return Token(bare, bare, variants=() if bare == dotted else (dotted,))


def _elided(run: str, language: str) -> int:
    """Return how many characters of a word are an article: elided before an apostrophe, or written
    with an Arabic word, alone or behind "and" or a preposition.
    """
    if language == "arabic":
        article = ARABIC_ARTICLE(run)
        if article is None or run in _folded_stop_words(language):
            return 0
        return article.end()
    if "'" not in run:
        return 0
    first, _, rest = run.partition("'")
    rules = language if language in ELISIONS else ENGLISH
    if not rest or first not in ELISIONS[rules]:
        return 0
    is_elided = fold(rest[0])[0] in ELIDED_IN_ENGLISH and len(rest) >= SHORTEST_IN_ENGLISH
    if rules == ENGLISH and not is_elided:
        return 0
    return len(first) + 1


def _further_keys(word: str, token: Token, language: str) -> Iterator[tuple[int, int, str]]:
    """Yield the `key_terms` of a word besides the token's term, with start and end in the word."""
    if IS_UNSPACED(word):
        of_word = units(word)
        if len(of_word) > 1:  # a single unit is the token's own term
            ends = accumulate(map(len, of_word))
            yield from (
                (end - len(unit), end, unit) for unit, end in zip(of_word, ends, strict=False)
            )
    elif not token.subtokens:
        for term in token.variants:
            yield 0, len(word), term
    else:
        for run in RUNS.finditer(word):
            for start, end, subtoken in _split(run[0], language):
                for term in (subtoken.term, *subtoken.variants):
                    yield run.start() + start, run.start() + end, term


@lru_cache(maxsize=8)
def _folded_stop_words(language: str) -> frozenset[str]:
    return frozenset(map(fold, stop_words(language)))


def _term(word: str, language: str) -> str:
    root = stem(word, language)
    # Stemmers leave nothing or one letter of a word that is all ending. In Hindi that would be the
    # same letter of माँ, "mother", and of में, "in".
    if len(root) < 2:
        root = word
    return (root if root.isascii() and root.islower() else fold(root))[:MAX_TERM]


def stem(word: str, language: str = ENGLISH) -> str:
    """Return Snowball's stem. Words in a script that is not the language's, and words of a language
    without a stemmer, are returned unchanged.

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


# A stemmer is not thread-safe: it stores the word that it works on.
_STEMMING = fork_lock()


@lru_cache(maxsize=8)
def _stemmer(language: str) -> Any:
    import Stemmer

    return Stemmer.Stemmer(language, 0) if language in Stemmer.algorithms() else None


# --- words of a text that match a query ---

# Column name to its matching words, as they are written there; only columns that have any.
Matches = dict[str, list[str]]


def matching_words(
    terms: Iterable[str], texts: Mapping[str, str], analyzer: Analyzer | None = None
) -> Matches:
    """Return the distinct words of each text that match the terms, in order.

    >>> matching_words({"run"}, {"title": "Running, run by run", "tags": "sport"})
    {'title': ['Running', 'run']}
    """
    query_terms = set(terms)
    analyzer = analyzer or Analyzer()
    matches: Matches = {}
    for name, text in texts.items():
        matching = [text[start:end] for start, end in analyzer.spans(text, query_terms)]
        if matching:
            matches[name] = list(dict.fromkeys(matching))
    return matches


def word_spans(words: Iterable[str], text: str) -> list[tuple[int, int]]:
    """Return where a text has words of the same terms as these, (start, end) each.

    >>> word_spans(["注意力"], "什么是注意力机制")
    [(3, 6)]
    """
    analyzer = Analyzer()
    terms = {token.term for word in words for token in analyzer.tokens(word)}
    return analyzer.spans(text, terms)

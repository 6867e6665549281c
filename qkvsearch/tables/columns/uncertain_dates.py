"""Read uncertain dates, as museums and archives write them: c. 1890, 19th century, 500 BCE.

A cell is a row of marks: numbers, and the words of `date_words.json`. `read_uncertain` reads them
from left to right into terms (a year, a decade or a century, each with the words around it), and
joins these to one span of years, from the lowest that the cell may be to the highest.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from qkvsearch.tables.date_spans import (
    BETWEEN,
    FIRST_YEAR,
    LAST_YEAR,
    OPEN,
    earliest,
    latest,
    span_of,
    written,
)

# For each role, its words. A role that ends in "_it" stands behind the number, "_before" in front
# of it. "life" are births, deaths and rights: b. 1890, ©1903. "century_short" follows an ordinal or
# a Roman numeral alone: "10 sec." is no century.
WORDS: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("date_words.json").read_text(encoding="utf-8")
)
# Years either way of "circa", and of a question mark, unless the cell says how many: 1890 ± 5.
CIRCA = 10
CIRCA_READ = f"circa read as {CIRCA} years either way"
# A longer text is no date, nor is one with more words that no list has.
MAX_LENGTH, MAX_NAMES = 80, 4
# What a number without an era may be, the least alone, and the least decade: 120s are seconds.
LAST_PLAIN_YEAR, FIRST_PLAIN_YEAR, FIRST_DECADE = 2200, 100, 1000
LAST_CENTURY, LAST_CENTURY_OF_DECADES = 21, 2000
# Which years of a century, and of a decade, its parts are. The first is 0.
PARTS_OF_CENTURY = {
    "early": (0, 39),
    "mid": (30, 69),
    "late": (60, 99),
    "first_half": (0, 49),
    "second_half": (50, 99),
}
PARTS_OF_DECADE = {
    "early": (0, 4),
    "mid": (3, 6),
    "late": (5, 9),
    "first_half": (0, 4),
    "second_half": (5, 9),
}
# Marks that make a number a date. About 1500 may also be an amount, unlike the sure ones.
SURE = frozenset(("century", "decade", "bce", "ce", "bce_before", "ce_before", "stored"))
TELLING = SURE | {"circa", "circa_it", "before", "after", "before_it", "after_it", "doubt", "life"}


class DateReading(NamedTuple):
    """What an uncertain date was read as.

    stored: the span, as `date_spans` writes it. marks: the kinds of its marks. has_circa: ten years
    were added on either side.
    """

    stored: str
    marks: frozenset[str] = frozenset()
    has_circa: bool = False

    @property
    def is_strict(self) -> bool:
        """Whether it has no words beside those of dates."""
        return "made" not in self.marks


_WORDS_OF_DATES = {part for words in WORDS.values() for word in words for part in word.split()}
# What says that there is no date.
_WORDS_OF_DATES |= {
    "date",
    "dated",
    "undated",
    "not",
    "unknown",
    "undatiert",
    "sans",
    "不详",
    "未知",
}
# Names of months and days in short, as in "Sun, 01 Jan 1995 08:00 GMT".
_WORDS_OF_DATES |= {month[:3] for month in WORDS["months"]} | {"sept", "utc", "gmt"}
for _day in ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"):
    _WORDS_OF_DATES |= {_day, _day[:3]}
# Those in scripts without spaces, which are not divided from others.
_UNSPACED_WORDS = re.compile(
    "|".join(sorted(filter(re.compile("[\u3040-\ud7af]").match, _WORDS_OF_DATES), key=len)[::-1])
)
_WORD = re.compile(r"[\u3040-\ud7af]|[^\W\d_]{3,}")


@lru_cache(maxsize=1 << 14)
def has_names(text: str) -> bool:
    """Return whether a date has words beside those of dates, such as the name of a dynasty.

    >>> has_names("Song dynasty (960–1279)"), has_names("designed 1926"), has_names("清乾隆")
    (True, False, True)
    >>> has_names("19th century"), has_names("18世纪初"), has_names("1890-tallet")
    (False, False, False)
    >>> has_names("01-Jan-1995"), has_names("Sun, 01 Jan 1995 08:00 GMT")
    (False, False)
    """
    others = _UNSPACED_WORDS.sub(" ", text.casefold())
    return any(
        word not in _WORDS_OF_DATES and f"-{word}" not in _WORDS_OF_DATES
        for word in _WORD.findall(others)
    )


@lru_cache(maxsize=1 << 14)
def read_uncertain(text: str, short_ranges: bool = True) -> DateReading | None:
    """Read a date that may be uncertain; None for a text that is none.

    short_ranges: 1910-12 is three years, and not a month.

    >>> [read_uncertain(text).stored for text in ("c. 1890", "19th century", "1890s", "500 BCE")]
    ['1880/1900', '1801/1900', '1890/1899', '-0499']
    >>> [read_uncertain(text).stored for text in ("1640–1650", "1890-95", "before 1900")]
    ['1640/1650', '1890/1895', '../1899']
    >>> [read_uncertain(text).stored for text in ("1900s", "1890s–1900s", "1800s–1900s")]
    ['1900/1999', '1890/1909', '1800/1999']
    >>> read_uncertain("19th") is read_uncertain("1,890") is read_uncertain("1890 €") is None
    True
    >>> read_uncertain("W-1850") is read_uncertain("C100") is None
    True
    """
    plain = _plain(text)
    if not plain or len(plain) > MAX_LENGTH or CODE.match(text):
        return None
    stored = _as_stored(plain, short_ranges)
    if stored is not None or FULL_DATE.match(plain):
        return stored
    cell = _DateCell()
    if not cell.read(plain) or not cell.is_complete():
        return None
    years = cell.years()
    if years is None:
        return None
    has_circa = any(term.circa and term.margin == CIRCA for term in cell.terms)
    return DateReading(_stored(*years), frozenset(cell.marks), has_circa)


def may_tell_dates(text: str) -> bool:
    """Return whether a text is an uncertain date, which may tell that a column has dates.

    >>> may_tell_dates("c. 1890"), may_tell_dates("1640-50"), may_tell_dates("1890")
    (True, True, False)
    """
    reading = read_uncertain(text)
    if reading is None or not reading.is_strict:
        return False
    return bool(reading.marks & TELLING) or BETWEEN in reading.stored


# Letters and then a number, as article numbers have them: W-1850, C100. In "mid-1890s" and
# "c1890" they are a date.
CODE = re.compile(r"\s*(?:(?!(?i:early|mid|late|pre|post)-)[^\W\d_]+-\d|(?!AD|BC)[A-Z]{1,3}\d)")


def _plain(text: str) -> str:
    """Return a text with plain dashes, single spaces and small letters."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).translate(DASHES)
    return " ".join(text.casefold().split())


DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−〜～—"), "-")


# --- years and months, and what is stored already ---

YEAR, MINUS_YEAR = re.compile(r"\d{3,4}"), re.compile(r"-\d{1,6}")
YEAR_AND_MONTH, HAS_MONTH = re.compile(r"(\d{4})-(\d\d)"), re.compile(r"\d-\d")
FULL_DATE = re.compile(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}(?!\d)")
MONTH_SLASH_YEAR = re.compile(r"(\d{1,2})/(\d{4})")
MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in WORDS["months"])
MONTH_AND_YEAR = re.compile(rf"({MONTH})\.?,? (\d{{4}})")
MONTHS = [name[:3] for name in WORDS["months"]]


def _as_stored(plain: str, short_ranges: bool) -> DateReading | None:
    """Return a year, a month or a stored date as it is stored; None for any other text."""
    if YEAR.fullmatch(plain):
        return DateReading(written(int(plain))) if int(plain) <= LAST_PLAIN_YEAR else None
    if match := MONTH_AND_YEAR.fullmatch(plain):
        return DateReading(f"{match[2]}-{MONTHS.index(match[1][:3]) + 1:02d}")
    if (match := MONTH_SLASH_YEAR.fullmatch(plain)) and 1 <= int(match[1]) <= 12:
        return DateReading(f"{match[2]}-{int(match[1]):02d}")
    if match := YEAR_AND_MONTH.fullmatch(plain):
        is_range = short_ranges and int(match[2]) > int(match[1]) % 100
        return DateReading(plain) if not is_range and span_of(plain) is not None else None
    if (plain[0] == "-" or BETWEEN in plain) and span_of(plain) is not None:
        return DateReading(_without_times(plain), frozenset(["stored"]))
    if MINUS_YEAR.fullmatch(plain):  # a year as astronomers count, or a number
        return DateReading(written(int(plain)))
    return None


def _without_times(stored: str) -> str:
    """Return a stored span by years, or by days where it has any, so that none is as long as a day.

    >>> _without_times("1850-03/.."), _without_times("1880/1900")
    ('1850-03-01/..', '1880/1900')
    """
    first, between, last = stored.partition(BETWEEN)
    if not between or not HAS_MONTH.search(stored):
        return stored
    start = OPEN if first == OPEN else earliest(first).partition(" ")[0]
    end = OPEN if last == OPEN else latest(last).partition(" ")[0]
    return f"{start}{BETWEEN}{end}"


def _stored(first: int, last: int) -> str:
    """Return a span of years as it is stored."""
    if first == last:
        return written(first)
    start = OPEN if first <= FIRST_YEAR else written(first)
    end = OPEN if last >= LAST_YEAR else written(last)
    return f"{start}{BETWEEN}{end}"


# --- terms ---


@dataclass
class _Term:
    """A year, a decade or a century, with the words around it."""

    number: int = 0
    # "year", "decade", "century", or "ordinal": a century where a later term is one.
    kind: str = ""
    # Of a century or a decade, as in `PARTS_OF_CENTURY`.
    part: str = ""
    circa: bool = False
    # Years either way, where it is circa.
    margin: int = CIRCA
    # "before", "after", "until" or "since".
    bound: str = ""
    # "bce" or "ce".
    era: str = ""
    # Whether the era is in front of the number.
    is_led: bool = False
    # Whether a dash, or a slash, joins it to the term before.
    is_joined: bool = False
    is_slashed: bool = False
    # Whether a comma parts its thousands.
    is_grouped: bool = False
    # Whether the 1900s are ten years: a dash joins them to another decade, as in 1890s-1900s.
    is_ten_years: bool = False

    @property
    def is_begun(self) -> bool:
        """Whether words wait for the number."""
        return bool(self.part or self.circa or self.bound or self.era or self.is_joined)

    def years(self) -> tuple[int, int]:
        """Return the first and the last year that it may be."""
        first, size = self._whole()
        last = first + size - 1
        if self.part and size > 1:
            low, high = (PARTS_OF_CENTURY if size == 100 else PARTS_OF_DECADE)[self.part]
            first, last = first + low, first + high
        if self.circa:
            first, last = first - self.margin, last + self.margin
        if self.bound == "before":
            return FIRST_YEAR, first - 1
        if self.bound == "until":
            return FIRST_YEAR, last
        if self.bound == "after":
            return last + 1, LAST_YEAR
        if self.bound == "since":
            return first, LAST_YEAR
        return first, last

    def _whole(self) -> tuple[int, int]:
        """Return the first year, and how many there are. 500 BCE is the year -499."""
        is_before = self.era == "bce"
        if self.kind == "century":
            return (1 - 100 * self.number if is_before else 100 * self.number - 99), 100
        if self.kind == "decade":
            # The 1800s are a century, as people mostly mean, and the 2000s are ten years.
            is_century = self.number % 100 == 0 and self.number < LAST_CENTURY_OF_DECADES
            size = 100 if is_century and not self.is_ten_years else 10
            return (2 - self.number - size if is_before else self.number), size
        return (1 - self.number if is_before else self.number), 1


@dataclass
class _DateCell:
    """The terms of a cell, read from left to right."""

    terms: list[_Term] = field(default_factory=list)
    marks: set[str] = field(default_factory=set)
    # The words that wait for the next number.
    waiting: _Term = field(default_factory=_Term)

    def read(self, plain: str) -> bool:
        """Read the marks of a text. Return False for a text that is no date."""
        place = n_names = 0
        while place < len(plain):
            end = self._read_mark(plain, place)
            if end is None:
                name = NAME.match(plain, place)
                n_names += 1
                if name is None or n_names > MAX_NAMES:
                    return False
                self.marks.add("made")
                end = name.end()
            place = end
        if self.waiting.circa and self.terms:  # 1600 (c.)
            self.terms[-1].circa = True
        return True

    def _read_mark(self, plain: str, place: int) -> int | None:
        """Read a number, a word or a space, and return its end; None where there is none."""
        # "2nd half of" is a word, and "siglo xix" a number.
        word = _word_at(plain, place) if plain[place].isdigit() else None
        match = None if word else _mark().match(plain, place)
        if match is not None:
            number = _number(match)
            if match["margin"] is not None and self.terms:
                self.terms[-1].circa, self.terms[-1].margin = True, int(match["margin"])
                self.marks.add("doubt")
            elif number is not None:
                self._add(*number, is_grouped="," in match[0])
            return match.end()
        word = word or _word_at(plain, place)
        if word is None:
            return None
        role = self._role(word)
        self.marks.add(role)
        return place + len(word) if self._apply(role, word) else None

    def _add(self, kind: str, number: int, is_grouped: bool) -> None:
        term, self.waiting = self.waiting, _Term()
        term.kind, term.number, term.is_grouped = kind, number, is_grouped
        if term.is_joined and self.terms:  # c. 1640-1650
            before = self.terms[-1]
            term.circa = term.circa or before.circa
            if before.is_led and before.era == "bce" and not term.era and number < before.number:
                # 公元前1200-1100年, 公元前5-4世纪; but 公元前206-220年
                term.era, term.is_led = before.era, True
                before.kind = "century" if kind == "century" else before.kind
        self.terms.append(term)
        self.marks.add(kind)

    def _role(self, word: str) -> str:
        """Return the role of a word by its place: behind a number, or in front of the next one."""
        roles = ROLES[word]
        if self.terms and not self.waiting.is_begun:
            for role in (*BEHIND, "to"):
                if role in roles:
                    return role
        in_front = [role for role in roles if role not in BEHIND and role != "to"]
        return (in_front or roles)[0]

    def _apply(self, role: str, word: str) -> bool:
        """Note a word with the term that it belongs to. Return False where there is none."""
        if role in PARTS_OF_CENTURY:
            # "mid- to late-" is all of both.
            self.waiting.part = "" if self.waiting.part else role
        elif role == "circa":
            self.waiting.circa = True
        elif role in BOUNDS:
            self.waiting.bound = role
        elif role in ("bce_before", "ce_before"):
            self.waiting.era, self.waiting.is_led = role.removesuffix("_before"), True
        elif role == "to":
            self.waiting.is_joined = bool(self.terms)
        elif role in ("or", "quiet", "life", "made"):
            self.waiting.is_slashed = word == "/"
        elif not self.terms:
            return False
        else:
            self._apply_behind(role)
        return True

    def _apply_behind(self, role: str) -> None:
        last = self.terms[-1]
        if role in ("doubt", "circa_it"):
            last.circa = True
        elif role in ("bce", "ce"):
            self._give_era(role)
        elif role in ("before_it", "after_it"):
            last.bound = "until" if role == "before_it" else "since"
        elif role in ("century", "century_short"):
            last.kind = "century"
        else:
            last.part = role.removesuffix("_it")

    def _give_era(self, era: str) -> None:
        """Give an era to the last term, and to those that dashes join to it."""
        for term in reversed(self.terms):
            if term.era:
                return
            term.era = era
            if not term.is_joined:
                return

    def is_complete(self) -> bool:
        """Fill in what later terms say of earlier ones. Return whether all are dates."""
        is_century = False
        for term in reversed(self.terms):
            if term.kind == "ordinal" and is_century:
                term.kind = "century"
            is_century = term.kind == "century"
        dates = [term for term in self.terms if term.kind != "ordinal"]
        if len(dates) < len(self.terms):  # 18th Dynasty
            self.marks.add("made")
            self.terms = dates
        for before, term in zip(self.terms, self.terms[1:], strict=False):
            are_alike = before.kind in ("year", term.kind) and term.kind in ("year", "decade")
            if are_alike and not before.era and not term.era:
                _lengthen(term, before)
            if term.is_joined and before.kind == term.kind == "decade":
                is_of_decades = bool(before.number % 100 or term.number % 100)
                before.is_ten_years = before.is_ten_years or is_of_decades
                term.is_ten_years = is_of_decades
        return bool(dates) and all(map(self._may_be, range(len(dates))))

    def _may_be(self, index: int) -> bool:
        """Return whether the number of a term can be one."""
        term = self.terms[index]
        if term.kind == "century":
            return 1 <= term.number <= (100 if term.era == "bce" else LAST_CENTURY)
        if term.era == "bce":
            return 0 < term.number < LAST_YEAR
        if term.is_grouped or term.number > LAST_PLAIN_YEAR:
            return False
        if term.kind == "decade":
            return term.number >= FIRST_DECADE or bool(term.era)
        if term.era:
            return term.number > 0
        # 50-320
        begins_range = index == 0 and len(self.terms) > 1 and self.terms[1].is_joined
        return term.number >= (1 if begins_range else FIRST_PLAIN_YEAR)

    def years(self) -> tuple[int, int] | None:
        """Return the first and the last year of all terms; None for a range that runs backwards,
        which before our era is written in either order.
        """
        spans = [term.years() for term in self.terms]
        for (first, _), (_, last), term in zip(spans, spans[1:], self.terms[1:], strict=False):
            if term.is_joined and last < first and term.era != "bce":
                return None
        return min(first for first, _ in spans), max(last for _, last in spans)


def _lengthen(term: _Term, before: _Term) -> None:
    """Read 95 behind 1890 as 1895, and 30s behind the 1920s as the 1930s."""
    size = 10 ** len(str(term.number))
    whole = before.number - before.number % size + term.number
    if (
        (term.is_joined or term.is_slashed)
        and size <= 100
        and whole > before.number >= FIRST_DECADE
    ):
        term.number, term.is_joined = whole, True


# --- marks ---

BOUNDS = ("before", "after", "until", "since")
BEHIND = (
    *("bce", "ce", "circa_it", "before_it", "after_it", "century", "century_short"),
    *("early_it", "mid_it", "late_it", "first_half_it", "second_half_it", "doubt"),
)
NO_MARKS = ("months", "centuries_in_words", "decade", "century_short")
ROLES: dict[str, list[str]] = {"?": ["doubt"], "(?)": ["doubt"]}
for _role, _words in WORDS.items():
    if _role not in NO_MARKS:
        for _word in _words:
            ROLES.setdefault(_word, []).append(_role)


# The words that begin with a letter, the longest first.
WORDS_FROM: dict[str, list[str]] = {}
for _word in sorted(ROLES, key=lambda word: (-len(word), word)):
    WORDS_FROM.setdefault(_word[0], []).append(_word)
LETTER = r"[^\W\d_]"
NAME = re.compile(rf"{LETTER}+\.?")
# Chinese words have no spaces around them.
FIRST_UNSPACED = "⺀"


def _word_at(text: str, place: int) -> str | None:
    """Return the longest word at a place of a text; None where there is none."""
    for word in WORDS_FROM.get(text[place], ()):
        if text.startswith(word, place) and _is_whole(text, place, place + len(word)):
            return word
    return None


def _is_whole(text: str, start: int, end: int) -> bool:
    """Return whether no letters continue a word, unless its script has no spaces."""
    if text[end - 1] >= FIRST_UNSPACED:
        return True
    follows = text[start].isalpha() and start > 0 and text[start - 1].isalpha()
    goes_on = text[end - 1].isalpha() and end < len(text) and text[end].isalpha()
    return not follows and not goes_on


def _any_of(words: list[str]) -> str:
    """Return a regular expression of words behind a number, the longest first."""
    in_order = sorted(words, key=lambda word: (-len(word), word))
    ends = [rf"(?!{LETTER})" if word[-1] < FIRST_UNSPACED else "" for word in in_order]
    return "|".join(re.escape(word) + end for word, end in zip(in_order, ends, strict=True))


# Chinese digits, from 1.
NUMERALS = "一二三四五六七八九"


@lru_cache(maxsize=1)
def _mark() -> re.Pattern[str]:
    """Return the regular expression of a space, a month or a number, compiled when it is needed."""
    century, short = _any_of(WORDS["century"]), _any_of(WORDS["century_short"])
    in_words = "|".join(sorted(WORDS["centuries_in_words"], key=len, reverse=True))
    suffix = r"(?:st|nd|rd|th|er|e|ème|й)"
    return re.compile(
        r"\s+"
        r"|(?:±|\+/-|\+-) ?(?P<margin>\d{1,3})(?!\d)"
        rf"|(?:(?P<of>\d{{1,2}})|(?P<of_in_words>{in_words}))世[纪紀]"
        rf"(?:(?P<tens>\d)0|(?P<tens_in_words>[{NUMERALS}])十)年代"
        rf"|(?P<decade>\d{{1,3}}0)(?:{_any_of(WORDS['decade'])})"
        rf"|(?P<century>\d{{1,2}})(?:\.|{suffix})?[ -]?(?:{century})"
        rf"|(?P<short_century>\d{{1,2}}){suffix}[ -]?(?:{short})(?! ?\d)"
        rf"|(?P<roman>[ivx]+)(?:e|er|ème)?(?=[ -]*(?:{century}|{short}))(?: (?:{short}))?"
        r"|(?P<roman_joined>[ivx]+)(?:e|er|ème)?(?= ?- ?[ivx]+)"
        r"|(?:siglos?|secolo|sec\.|século) (?P<roman_behind>[ivx]+)"
        rf"|(?P<in_words>{in_words})世[纪紀]"
        rf"|(?P<ordinal>\d{{1,2}})(?:(?:st|nd|rd|th)(?!{LETTER})|\.(?= ?[-/]))"
        rf"|\d{{1,2}}\.? (?:{MONTH})\.?(?=,? \d{{4}})"
        rf"|(?:{MONTH})\.?(?: \d{{1,2}}(?!\d),?)?(?=,? ?\d{{4}}|-)"
        r"|(?P<year>\d{1,3},\d{3}|\d{1,6})(?!\d)"
    )


def _number(match: re.Match[str]) -> tuple[str, int] | None:
    """Return the kind and the number of a mark; None for a space or a month."""
    if match["of"] is not None or match["of_in_words"] is not None:
        return "decade", _decade_of_century(match)
    for kind in ("decade", "century", "ordinal"):
        if match[kind] is not None:
            return kind, int(match[kind])
    if match["year"] is not None:
        return "year", int(match["year"].replace(",", ""))
    if match["short_century"] is not None:
        return "century", int(match["short_century"])
    if match["in_words"] is not None:
        return "century", WORDS["centuries_in_words"].index(match["in_words"]) + 1
    for group in ("roman", "roman_behind", "roman_joined"):
        if match[group] is not None:
            return ("ordinal" if group == "roman_joined" else "century"), _roman(match[group])
    return None


def _decade_of_century(match: re.Match[str]) -> int:
    """Return the first year of 20世纪80年代, with digits or in words."""
    if match["of"] is not None:
        centuries_before = int(match["of"]) - 1
    else:
        centuries_before = WORDS["centuries_in_words"].index(match["of_in_words"])
    if match["tens"] is not None:
        tens = int(match["tens"])
    else:
        tens = NUMERALS.index(match["tens_in_words"]) + 1
    return 100 * centuries_before + 10 * tens


def _roman(digits: str) -> int:
    """Return a Roman numeral up to 39 as a number.

    >>> _roman("xix")
    19
    """
    values = [{"i": 1, "v": 5, "x": 10}[digit] for digit in digits]
    pairs = zip(values, [*values[1:], 0], strict=True)
    return sum(-value if value < following else value for value, following in pairs)

"""Years that a query names in words, as the ranges by which columns are filtered."""

from __future__ import annotations

import re

from qkvsearch._utils.folding import fold
from qkvsearch.tables.date_spans import BETWEEN, OPEN

# A date has at most so many words.
MAX_WORDS = 4
# In a text without spaces: 1994年, 1990年代, 19世纪, 20世纪80年代, 2010年以后.
NUMERAL = "[0-9〇零一二三四五六七八九十廿]+"
IN_RUN = re.compile(f"(?:{NUMERAL}世[纪紀](?:{NUMERAL}年代)?|{NUMERAL}年代?)(?:[以之][前后後])?")
# 90年代 and 九十年代 are of the last century. 10年代 and 20年代 may be of this one.
SHORT_DECADE = re.compile("([3-9])0年代|([三四五六七八九])十年代").fullmatch
DIGITS = "〇一二三四五六七八九"
# Behind these a number of four digits is a year.
IN_YEAR = frozenset(("in", "from"))
YEAR = re.compile(r"[12]\d{3}").fullmatch
# In front of a date these say nothing: a poster from the 1890s is of the 1890s, not of later years.
QUIET = frozenset(("a", "an", "the", "from", "of"))
# Only texts with a numeral are read.
MAY_HAVE_DATE = re.compile(rf"\d|{NUMERAL}[世年]|\b[ivxIVX]+\b").search
PUNCTUATION = ",.;:!?()，。；！？（）、"
# Columns of numbers with such a name have years.
NAMES_OF_YEARS = frozenset(("year", "years", "年", "年份", "jahr", "annee", "ano"))


def ranges_of_years(text: str) -> dict[str, str]:
    """Return the decades, centuries and written-out years of a text, each as a filter has it.

    A number alone is none: it may count anything. "From 1925" and "before 1700" name years.

    >>> ranges_of_years("a 19th century vase"), ranges_of_years("posters from the 1890s")
    ({'19th century': '1801..1900'}, {'1890s': '1890..1899'})
    >>> ranges_of_years("1994年的电影"), ranges_of_years("1994 films")
    ({'1994年': '1994'}, {})
    >>> ranges_of_years("a chair from 1925"), ranges_of_years("paintings before 1700")
    ({'1925': '1925'}, {'before 1700': '..1699'})
    >>> ranges_of_years("九十年代的喜剧")
    {'九十年代': '1990..1999'}
    """
    if not MAY_HAVE_DATE(text):
        return {}
    words = [word.strip(PUNCTUATION) for word in text.split()]
    ranges: dict[str, str] = {}
    start = 0
    while start < len(words):
        word, following = words[start].casefold(), "".join(words[start + 1 : start + 2])
        if word in IN_YEAR and YEAR(following):
            ranges[following] = following
            start += 2
            continue
        if word in QUIET:
            start += 1
            continue
        # The longest phrase is the most exact: "early 19th century".
        ends = range(min(start + MAX_WORDS, len(words)), start, -1)
        phrases = {" ".join(words[start:end]): end for end in ends}
        found = next(filter(_range_of, phrases), None)
        if found is not None:
            ranges[found] = _range_of(found)
            start = phrases[found]
            continue
        for run in IN_RUN.findall(words[start]):
            years = _range_of(run)
            if years:
                ranges[run] = years
        start += 1
    return ranges


def _range_of(phrase: str) -> str:
    """Return the range of a phrase that is a date and nothing else; "" for any other."""
    from qkvsearch.tables.columns.uncertain_dates import read_uncertain

    short_decade = SHORT_DECADE(phrase)
    if short_decade is not None:
        digit, numeral = short_decade.groups()
        tens = digit or DIGITS.index(numeral)
        return f"19{tens}0..19{tens}9"
    reading = read_uncertain(phrase)
    if reading is None or not reading.is_strict:
        return ""
    is_certain = not reading.marks.isdisjoint(("century", "decade")) or "年" in phrase
    # "Before 1700", but not "before 3".
    is_bound = OPEN in reading.stored and any(map(YEAR, phrase.split()))
    if not is_certain and not is_bound:
        return ""
    first, is_span, last = reading.stored.partition(BETWEEN)
    if not is_span:
        return first
    # An open end has nothing where the other has a year: 1890.. and not 1890....
    return OPEN.join("" if end == OPEN else end for end in (first, last))


def has_years(name: str, type_: str) -> bool:
    """Return whether a column of this name and type has dates, or years as numbers.

    >>> has_years("made", "date"), has_years("release_year", "number"), has_years("pages", "number")
    (True, True, False)
    """
    words = re.findall(r"[^\W_]+", fold(name))
    return type_ == "date" or (type_ == "number" and not NAMES_OF_YEARS.isdisjoint(words))

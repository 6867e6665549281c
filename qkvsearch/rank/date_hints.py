"""Years that a query names in words, as the ranges by which columns are filtered."""

from __future__ import annotations

import re

from qkvsearch._utils.folding import fold
from qkvsearch.tables.date_spans import BETWEEN, OPEN

# A date has at most so many words.
MAX_WORDS = 4
# In a text without spaces: 1994年, 1990年代, 19世纪, 20世纪80年代.
NUMERAL = "[0-9〇零一二三四五六七八九十廿]+"
IN_RUN = re.compile(f"{NUMERAL}世[纪紀](?:{NUMERAL}年代)?|{NUMERAL}年代?")
# Only texts with a numeral are read.
MAY_HAVE_DATE = re.compile(rf"\d|{NUMERAL}[世年]|\b[ivxIVX]+\b").search
PUNCTUATION = ",.;:!?()，。；！？（）、"
# Columns of numbers with such a name have years.
NAMES_OF_YEARS = frozenset(("year", "years", "年", "年份", "jahr", "annee", "ano"))


def ranges_of_years(text: str) -> dict[str, str]:
    """Return the decades, centuries and written-out years of a text, each as a filter has it.

    A number alone is none: it may count anything.

    >>> ranges_of_years("a 19th century vase"), ranges_of_years("posters from 1890s")
    ({'19th century': '1801..1900'}, {'1890s': '1890..1899'})
    >>> ranges_of_years("1994年的电影"), ranges_of_years("1994 films")
    ({'1994年': '1994'}, {})
    """
    if not MAY_HAVE_DATE(text):
        return {}
    words = [word.strip(PUNCTUATION) for word in text.split()]
    ranges: dict[str, str] = {}
    start = 0
    while start < len(words):
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

    reading = read_uncertain(phrase)
    if reading is None or not reading.is_strict:
        return ""
    is_certain = not reading.marks.isdisjoint(("century", "decade")) or "年" in phrase
    return reading.stored.replace(BETWEEN, OPEN) if is_certain else ""


def has_years(name: str, type_: str) -> bool:
    """Return whether a column of this name and type has dates, or years as numbers.

    >>> has_years("made", "date"), has_years("release_year", "number"), has_years("pages", "number")
    (True, True, False)
    """
    words = re.findall(r"[^\W_]+", fold(name))
    return type_ == "date" or (type_ == "number" and not NAMES_OF_YEARS.isdisjoint(words))

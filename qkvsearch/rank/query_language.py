"""The language of a search box: "a phrase", -word, field:word, word*, word^2, text.

Nothing is a syntax error: whatever is no operator is text. An item must match what has an operator.
All other words rank the results.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple
from unicodedata import category

ClauseKind = Literal["text", "phrase", "prefix"]
# A query may be as long as a page, and each operator takes a lookup.
MAX_OPERATORS = 20
MAX_BOOST = 100.0
# A text of more words, phrases aside, is prose, and its quotation marks are quotations.
MAX_WORDS = 8

# Other characters for the signs of this language: the quotation marks of word processors, and the
# full-width signs that Chinese and Japanese keyboards type.
OTHER_SIGNS = str.maketrans("“”„‟«»＂－：＊＾", '"""""""-:*^')
# The minus sign and the dashes that word processors and tablets write before a word.
MINUS = "-\u2212\u2010\u2011\u2012\u2013"
# One piece between blanks. A quotation mark inside a word means inches, or is a slip.
PIECE = re.compile(
    rf"""
    (?P<minus>[{MINUS}])?
    (?:(?P<field>[^\s":]{{1,64}}):)?
    (?:
        "(?P<phrase>[^"]*)"
    |
        (?P<word>[^\s"]+?)
        (?P<star>(?<![*\s])\*)?
    )
    (?:\^(?P<boost>\d{{1,3}}(?:\.\d{{1,3}})?))?
    # The punctuation behind it is no part of a value: `year:2005,`. Two points are: `year:2000..`.
    (?:
        (?(field)(?<!\d\.)(?!\.\.))
        [,.;!?)，。；！？）、]+
    )?
    (?=$|\s)
    """,
    re.VERBOSE,
)
# A query without these characters is text.
SIGNS = frozenset(MINUS + '"*^:')
# The start of a piece that may be more than text.
OPERATOR = re.compile(rf"""(?<!\S)(?:[{MINUS}]|[^\s"*^:]*["*^:])""")


@dataclass(frozen=True)
class Clause:
    """A piece of a query."""

    # The piece without its operators.
    text: str
    kind: ClauseKind = "text"
    # The name of a column, as typed; "" for all searched columns.
    field: str = ""
    # Whether items must not match it.
    excluded: bool = False
    # How many times it counts.
    boost: float = 1.0

    @property
    def is_condition(self) -> bool:
        """Whether items must match it, or must not. All other text ranks the results."""
        return self.kind != "text" or self.excluded or bool(self.field)

    @property
    def is_plain(self) -> bool:
        """Whether it is about all searched columns, and not excluded."""
        return not self.field and not self.excluded

    def __str__(self) -> str:
        """The clause as it can be typed."""
        text = {"phrase": f'"{self.text}"', "prefix": f"{self.text}*"}.get(self.kind, self.text)
        if self.field:
            text = f"{self.field}:{text}"
        if self.excluded:
            text = f"-{text}"
        return text


class QuerySpan(NamedTuple):
    """A piece of a query as it was typed, from `start` to `end`."""

    start: int
    end: int
    # What it is if it has an operator; None for text.
    clause: Clause | None = None


class ParsedQuery(NamedTuple):
    """The clauses of a query, in order."""

    clauses: list[Clause]
    # How many operators beyond the first `MAX_OPERATORS` were left out.
    n_ignored: int = 0


def parse_query(query: str, is_field: Callable[[str], bool] = lambda name: False) -> ParsedQuery:
    """Split a query into clauses. is_field(name): whether there is a column of this name.

    >>> query = parse_query('red "rain jacket" -potatoes c:4 sho*', {"c"}.__contains__)
    >>> list(map(str, query.clauses))
    ['red', '"rain jacket"', '-potatoes', 'c:4', 'sho*']
    >>> [clause.text for clause in parse_query("12:30, rock - roll, 5 * 3, 7\\" single").clauses]
    ['12:30, rock - roll, 5 * 3, 7" single']
    >>> list(map(str, parse_query("c:5.. c:4, c:3.", {"c"}.__contains__).clauses))
    ['c:5..', 'c:4', 'c:3']
    >>> [str(clause) for clause in parse_query("rain −boots –socks").clauses]
    ['rain', '-boots', '-socks']
    >>> parse_query("jacket^2").clauses[0].boost
    2.0
    >>> list(map(str, parse_query("雨衣 －骑行 有货：有", {"有货"}.__contains__).clauses))
    ['雨衣', '-骑行', '有货:有']
    """
    clauses: list[Clause] = []
    n_operators = 0
    for start, end, clause in spans(query, is_field):
        if clause is None:
            clauses += _text(query[start:end])
            continue
        n_operators += 1
        if n_operators <= MAX_OPERATORS:
            clauses.append(clause)
    return ParsedQuery(_without_quotations(clauses), max(0, n_operators - MAX_OPERATORS))


def spans(query: str, is_field: Callable[[str], bool] = lambda name: False) -> list[QuerySpan]:
    """Split a query into its clauses with operators and the texts between them, as they were typed.

    >>> query = 'red "rain jacket" sho*'
    >>> [query[start:end] for start, end, clause in spans(query) if clause]
    ['"rain jacket"', 'sho*']
    """
    typed = query.translate(OTHER_SIGNS)
    if SIGNS.isdisjoint(typed):
        return [QuerySpan(0, len(query))]
    found: list[QuerySpan] = []
    # Where the text begins that is in no clause yet, and how far the query is read.
    text_start = position = 0
    while start := OPERATOR.search(typed, position):
        position = start.start()
        piece = PIECE.match(typed, position)
        clause = _clause(piece, is_field) if piece else None
        if clause is None:
            position = _end_of_word(typed, position)
            continue
        assert piece is not None
        found += [QuerySpan(text_start, position), QuerySpan(position, piece.end(), clause)]
        text_start = position = piece.end()
    return [*found, QuerySpan(text_start, len(query))]


def _without_quotations(clauses: list[Clause]) -> list[Clause]:
    """Return the clauses, with the phrases of prose as text."""
    n_words = sum(len(clause.text.split()) for clause in clauses if not clause.is_condition)
    if n_words <= MAX_WORDS:
        return clauses
    return [
        Clause(clause.text) if clause.kind == "phrase" and clause.is_plain else clause
        for clause in clauses
    ]


def _clause(piece: re.Match[str], is_field: Callable[[str], bool]) -> Clause | None:
    """Return the clause of a piece; None for text."""
    field, word = piece["field"] or "", piece["word"]
    if field and not is_field(field):
        return None
    kind: ClauseKind
    if word:
        text = word
        kind = "prefix" if piece["star"] else "text"
        if not word[0].isalnum() and not field:  # such as a smiley
            return None
    else:
        text = (piece["phrase"] or "").strip()
        kind = "phrase"
    if not any(map(str.isalnum, text)) and not (field and is_sign(text)):
        return None
    boost = float(piece["boost"] or 1)
    if boost == 0:  # the word would score nothing
        boost = 1.0
    clause = Clause(text, kind, field, bool(piece["minus"]), min(boost, MAX_BOOST))
    has_operator = clause.is_condition or clause.boost != 1
    return clause if has_operator else None


def is_sign(text: str) -> bool:
    """Return whether a text consists of signs that a cell may consist of, such as a tick. Those of
    ASCII, as in "price:>", are none.

    >>> is_sign("✓"), is_sign("★★"), is_sign(">"), is_sign("a"), is_sign("")
    (True, True, False, False, False)
    """
    signs = [not char.isascii() and category(char).startswith("S") for char in text]
    return bool(signs) and all(signs)


def _end_of_word(text: str, position: int) -> int:
    while position < len(text) and not text[position].isspace():
        position += 1
    return position


def _text(piece: str) -> list[Clause]:
    return [Clause(piece.strip())] if piece.strip() else []

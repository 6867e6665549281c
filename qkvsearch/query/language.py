"""What a person may write into a search box: "a phrase", -word, field:word, word*, word^2, text.

Nothing is a syntax error: what is no operator is text. What is written with an operator must hold
of an item, or must not; all else ranks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["text", "phrase", "prefix"]
# A query may be as long as a page, and each operator costs a look-up.
MAX_OPERATORS = 20
MOST_BOOST = 100.0

# A text of more words than these, besides its phrases, is no typed query but a sentence, and what
# it has in quotation marks is what somebody said.
MOST_WORDS = 8

# Quotation marks as word processors set them.
QUOTES = str.maketrans("“”„‟«»", '""""""')
# One piece between blanks. A quotation mark inside a word is a sign for inches, or a slip.
PIECE = re.compile(
    r"""(?P<minus>-)?
        (?:(?P<field>[^\s":]{1,64}):)?
        (?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+?)(?P<star>(?<![*\s])\*)?)
        (?:\^(?P<boost>\d{1,3}(?:\.\d{1,3})?))?
        (?=$|\s|[,.;!?)](?=$|\s))""",
    re.VERBOSE,
)
# Without any of these, all is text.
SIGNS = frozenset('-"*^:')
# Where a piece may begin that is more than text.
OPERATOR = re.compile(r"""(?<!\S)(?:-|[^\s"*^:]*["*^:])""")


@dataclass(frozen=True)
class Clause:
    """A piece of a query. field: the column that it is about, as typed, or "". excluded: of what
    must not be there. boost: how many times it counts.
    """

    text: str
    kind: Kind = "text"
    field: str = ""
    excluded: bool = False
    boost: float = 1.0

    @property
    def is_condition(self) -> bool:
        """Whether it must hold of an item, or must not, where text only ranks."""
        return self.kind != "text" or self.excluded or bool(self.field)

    @property
    def is_plain(self) -> bool:
        """Whether it is about all that search reads, and must be there."""
        return not self.field and not self.excluded

    def __str__(self) -> str:
        """As it can be typed."""
        minus, field = "-" * self.excluded, f"{self.field}:" if self.field else ""
        shown = {"phrase": f'"{self.text}"', "prefix": f"{self.text}*"}.get(self.kind, self.text)
        return f"{minus}{field}{shown}"


class ParsedQuery(NamedTuple):
    """clauses: text and operators, in order. n_ignored: how many operators come after the first
    `MAX_OPERATORS`, and are no clauses.
    """

    clauses: list[Clause]
    n_ignored: int = 0


def parse_query(query: str, is_field: Callable[[str], bool] = lambda name: False) -> ParsedQuery:
    """Read a query. is_field: whether there is a column of a name.

    >>> found = parse_query('red "rain jacket" -potatoes c:4 sho*', {"c"}.__contains__)
    >>> list(map(str, found.clauses))
    ['red', '"rain jacket"', '-potatoes', 'c:4', 'sho*']
    >>> [clause.text for clause in parse_query("12:30, rock - roll, 5 * 3, 7\\" single").clauses]
    ['12:30, rock - roll, 5 * 3, 7" single']
    >>> parse_query("jacket^2").clauses[0].boost
    2.0
    """
    typed = query.translate(QUOTES)
    if SIGNS.isdisjoint(typed):
        return ParsedQuery(_text(query))
    clauses: list[Clause] = []
    plain = place = n_operators = 0
    while begin := OPERATOR.search(typed, place):
        place = begin.start()
        found = PIECE.match(typed, place)
        clause = _clause(found, is_field) if found else None
        if clause is None:
            place = _end_of_word(typed, place)
            continue
        assert found is not None
        clauses += _text(query[plain:place])
        n_operators += 1
        if n_operators <= MAX_OPERATORS:
            clauses.append(clause)
        plain = place = found.end()
    clauses = _spoken([*clauses, *_text(query[plain:])])
    return ParsedQuery(clauses, max(0, n_operators - MAX_OPERATORS))


def _spoken(clauses: list[Clause]) -> list[Clause]:
    """With the phrases of a sentence as text."""
    n_words = sum(len(clause.text.split()) for clause in clauses if not clause.is_condition)
    if n_words <= MOST_WORDS:
        return clauses
    return [
        Clause(clause.text) if clause.kind == "phrase" and clause.is_plain else clause
        for clause in clauses
    ]


def _clause(found: re.Match[str], is_field: Callable[[str], bool]) -> Clause | None:
    """What a piece says; None for text."""
    field, word = found["field"] or "", found["word"]
    if field and not is_field(field):
        return None
    kind: Kind = "text" if word else "phrase"
    text = word or (found["phrase"] or "").strip()
    if found["star"]:
        kind = "prefix"
    if not any(map(str.isalnum, text)) or (word and not (word[0].isalnum() or field)):
        return None
    boost = min(float(found["boost"] or 1) or 1.0, MOST_BOOST)  # word^0 would score nothing
    clause = Clause(text, kind, field, bool(found["minus"]), boost)
    return clause if clause.is_condition or boost != 1 else None


def _end_of_word(text: str, place: int) -> int:
    while place < len(text) and not text[place].isspace():
        place += 1
    return place


def _text(piece: str) -> list[Clause]:
    return [Clause(piece.strip())] if piece.strip() else []

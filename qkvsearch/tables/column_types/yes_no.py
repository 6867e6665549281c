"""Yes and no, in any language."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from qkvsearch._utils.folding import fold
from qkvsearch.errors import QkvError
from qkvsearch.tables.column_facts import CELL_WORDS, ParsedCells, no_words, yes_words
from qkvsearch.tables.column_types.column_type import MAX_UNFIT, ColumnType
from qkvsearch.terminal import shorten

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

# Words for yes and no that are also codes: of languages, countries or points of the compass.
CODES = frozenset(CELL_WORDS["codes"])
# The codes that are yes and no in one language.
CODE_PAIRS = [frozenset(pair) for pair in CELL_WORDS["code_pairs"]]
AS_PROGRAMS_WRITE = {True: ("1", "true", "yes"), False: ("0", "false", "no")}


class YesNoType(ColumnType):
    """Stored as 1 and 0."""

    name = "yes/no"
    noun = "yes/no"
    facet_rank = 4
    is_numeric = True
    explains_misfits = False  # other words are ordinary text
    shown_as = "yes/no"

    def read(self, texts: pd.Series, counts: np.ndarray, convention: str = "") -> ParsedCells:
        return read_yes_no(texts, counts)

    def is_as_written(self, text: str, cell: Any) -> bool:
        """Return True for what programs write: True, yes, 1."""
        return text.casefold() in AS_PROGRAMS_WRITE[bool(cell)]

    def entries(self, cell: Any) -> list[str]:
        return ["yes" if cell else "no"]

    def test(self, text: str, is_prefix: bool) -> Callable[[Any], bool]:
        answer = fold(text)
        return lambda cell: answer in (yes_words() if cell else no_words())

    def compares_with(self, literal: Any) -> bool:
        return literal in (None, 0, 1)

    def condition(self, name: str, value: str, distinct: Sequence[Any]) -> tuple[str, list[Any]]:
        answer = fold(value)
        if answer not in yes_words() | no_words():
            raise QkvError(f"`filter`: {name} is yes or no, not {value!r}")
        return f"{name} = ?", [int(answer in yes_words())]


def read_yes_no(texts: pd.Series, counts: np.ndarray) -> ParsedCells:
    """Parse the distinct cells `texts`, of which there are `counts` (m,) each, as 1 and 0. Doubts
    say where they may mean something else.

    >>> import numpy as np, pandas as pd
    >>> read_yes_no(pd.Series(["Yes", "no", "maybe"]), np.ones(3)).values.tolist()
    [1, 0, <NA>]
    """
    stripped = texts.str.strip()
    words = stripped.map(fold)
    values = words.map(dict.fromkeys(yes_words(), 1) | dict.fromkeys(no_words(), 0)).astype("Int64")
    parsed = ParsedCells("yes/no", values)
    parsed.doubts = _doubts_about_answers(stripped, parsed, counts)
    parsed.change("yes and no to 1 and 0", ~words.isin(["0", "1"]).to_numpy(bool))
    return parsed


def _doubts_about_answers(stripped: pd.Series, parsed: ParsedCells, counts: np.ndarray) -> str:
    """Return why words that are yes or no may be no answers; "" where nothing speaks for that."""
    answers = stripped[parsed.fits]
    if answers.empty:
        return ""
    has_both = parsed.values.nunique() == 2
    if (answers.str.len() == 1).all() and not has_both:
        return "one letter throughout"
    if _may_be_codes(answers):
        shown = " and ".join(answers.sort_values().unique()[:2])
        return f"{shown} may be codes; set the type to yes/no if they are answers"
    if answers.isin(["0", "1"]).any():
        return "numbers"
    # One answer and a few other words: one of these may be the other answer, which must not be
    # emptied. With many other words the column is text anyway.
    others = stripped[~parsed.fits]
    n_others = counts[~parsed.fits].sum()
    if not has_both and 0 < n_others <= MAX_UNFIT * counts.sum():
        answer, other = shorten(answers.iloc[0]), shorten(others.iloc[0])
        return f"beside {answer!r} there is {other!r}; set the type to yes/no to empty such cells"
    return ""


def _may_be_codes(answers: pd.Series) -> bool:
    """Return whether yes and no may be codes: of languages, countries or points of the compass.

    >>> import pandas as pd
    >>> _may_be_codes(pd.Series(["SI", "NO"])), _may_be_codes(pd.Series(["Si", "No"]))
    (True, False)
    >>> _may_be_codes(pd.Series(["Si", "No", "Da"])), _may_be_codes(pd.Series(list("NOSY")))
    (True, True)
    """
    words = answers.str.casefold()
    spelled = frozenset(words)
    if words.str.fullmatch("[a-z]{1,2}").all():
        # Several letters for yes, or for no, are no answers of one language.
        letters = {word for word in spelled if len(word) == 1}
        n_yes = len(letters & yes_words())
        if n_yes > 1 or len(letters) - n_yes > 1:
            return True
    if not words.isin(CODES).all():
        return False
    if (answers.str.isupper() | answers.str.islower()).all():
        return True
    # Capitalized words are answers where they are those of one language.
    return not any(spelled <= pair for pair in CODE_PAIRS)

"""The questions that a build answers, each with all its options in one place.

`Engine.search`, `Engine.recommend` and `Engine.similar` turn their keywords into one of these. The
options of the command line and the parameters of the web API take help, defaults and limits from
the same fields. To add an option, add a field here, what acts on it, and its name in the engine,
the command and the request; `tests/test_questions.py` says which of these lacks it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from qkvsearch.errors import QkvError
from qkvsearch.models.recommend_heads import HEADS
from qkvsearch.rank.options import Option, option

if TYPE_CHECKING:
    from qkvsearch.tables.ids import Id
    from qkvsearch.where import Where

# How a hit can be explained, beside True and False: also by what would have to be gone.
SMALLEST = "smallest"
Explain = bool | Literal["smallest"]
# What `recommend` can score by.
Model = Literal["preferences", "next-item"]
PREFERENCES, NEXT_ITEM = MODELS = get_args(Model)


def options_of(question: type[Question]) -> dict[str, Option]:
    """Return the options of a kind of question by their names."""
    return _options(question)  # type: ignore[arg-type]  # mypy holds the class to be unhashable


@cache
def _options(question: type[Question]) -> dict[str, Option]:
    return {each.name: each.metadata["option"] for each in fields(question)}


@dataclass(frozen=True, kw_only=True)
class Question:
    """What every ranking can be asked for: which of the items, how many, and what to show of them.

    Names and ids are lists here. `check_names`, `head_names` and `id_list` check them, and make
    lists of what a caller may give. All other values are checked when a question is made. Raises
    `DataError`, which names the option.
    """

    k: int = option("whole", "How many to show.", 10, minimum=0)
    offset: int = option("whole", "Skip the first N.", 0, minimum=0)
    where: Where | None = option(
        "condition",
        "Only items for which this SQL expression over the catalog's columns holds, such as "
        "year >= 2000.",
    )
    fields: Sequence[str] = option(
        "names", "Columns of the catalog to show as well, such as price,url.", ()
    )
    distinct: str | None = option(
        "text",
        "List only the best hit for each value of this column, such as family. Items with an empty "
        "cell all stay.",
    )
    temperature: float | None = option(
        "number",
        "Divide the scores by this before the softmax. A lower one gives the first hits more "
        "weight. By default it is the scores' standard deviation.",
        minimum=0,
        is_open=True,
    )

    def __post_init__(self) -> None:
        for name, described in options_of(type(self)).items():
            described.check(name, getattr(self, name))

    @property
    def n_ranked(self) -> int:
        """How many hits to rank so that `k` remain after `offset`."""
        return self.k + self.offset if self.k else 0


@dataclass(frozen=True, kw_only=True)
class SearchQuestion(Question):
    """Which items answer a text?

    >>> SearchQuestion(query="red jacket").k
    10
    >>> SearchQuestion(query="red jacket", k=-1)
    Traceback (most recent call last):
    qkvsearch.errors.DataError: `k` must be a whole number, at least 0, not -1
    """

    query: str = option("text", "The text.", MISSING)
    heads: Sequence[str] | None = option(
        "heads",
        "Which heads to use: lexical, semantic, token (a second pass, word by word), collaborative "
        "(with a user), or one by its name. By default all.",
    )
    # Their preferences are one more head.
    user: Id | None = option("id", "An existing user.")
    strict_user: bool = option("flag", "An unknown user is an error.", False)
    prefix: bool = option(
        "flag", "The user is still typing the last word: search as you type.", False
    )
    facets: Sequence[str] = option(
        "names", "Columns whose values to count among all matching items, such as genre,year.", ()
    )
    snippet: bool = option(
        "flag", "Show the passage of the longest text that matches the query best.", False
    )
    passages: int = option(
        "whole",
        "Show this many of the best passages of each hit with a long text, instead of the best "
        "one.",
        0,
        minimum=0,
    )
    # Adds `matches` to each hit. The command line and the web API have more words for it.
    explain: Explain = option(
        "reasons",
        "Show which words match; smallest: also without which words of the query the hit would not "
        "be there.",
        False,
        choices=(SMALLEST,),
    )
    anyway: bool = option("flag", "Show the nearest items where nothing answers the query.", False)
    rules: bool = option("flag", "Apply the owner's rules: pinned, buried and boosted items.", True)
    # By default, None, the command line and Python list them among the others, by their scores.
    # Over HTTP they are left out.
    weak: bool | None = option("flag", "List weak matches below all others, or leave them out.")
    sort: str | None = option(
        "text",
        "Sort all hits by a column, ascending, or descending as -COLUMN; users: most users first. "
        "Weak matches are left out unless they are asked for.",
    )

    @property
    def is_by_score(self) -> bool:
        """Whether all hits are listed by their scores alone, weak ones among the others."""
        return self.weak is None and self.sort is None


@dataclass(frozen=True, kw_only=True)
class RecommendQuestion(Question):
    """Which items suit a user, or someone who likes these items?"""

    user: Id | None = option("id", "An existing user.")
    strict_user: bool = option("flag", "An unknown user is an error.", False)
    likes: Sequence[Id] = option("ids", "An id or title that they like.", ())
    ratings: Mapping[Id, float] | None = option(
        "ratings", "Count this rating, as if it were recorded now."
    )
    without: Sequence[Id] = option("ids", "Pretend that this item is not in the history.", ())
    exclude: Sequence[Id] = option("ids", "An id or title to leave out.", ())
    # On the command line a file of ids.
    only: Sequence[Id] | None = option("ids", "Only items with these ids.")
    seen: bool = option("flag", "Whether items of the history may be among the hits.", False)
    model: str = option(
        "choice",
        "Score by preferences from all of the history, or by what comes next after it (built with "
        "next-item).",
        PREFERENCES,
        choices=MODELS,
    )
    heads: Sequence[str] | None = option(
        "heads",
        f"Which heads to use: {', '.join(HEADS)}. By default all, in the shares that the build "
        "learned.",
    )
    recent: float | None = option(
        "number",
        "Weigh recent interactions more: one counts half as much after N later ones.",
        minimum=1,
    )
    damping: float = option(
        "number",
        "Rank popular items lower: subtract X standard deviations of the scores for each standard "
        "deviation of the logarithm of an item's number of users.",
        0.0,
        minimum=0,
        maximum=1e9,
    )
    diversity: float = option(
        "number",
        "How much a hit should differ from the hits above it, from 0 to 1.",
        0.0,
        minimum=0,
        maximum=1,
    )
    rules: bool = option("flag", "Apply the owner's boosts.", True)
    # Adds `because` to each hit. The command line and the web API have more words for it.
    explain: Explain = option(
        "reasons",
        "Show what each item of the history adds; smallest: also without which items the hit would "
        "not be there.",
        False,
        choices=(SMALLEST,),
    )
    because: int | None = option(
        "whole",
        "How many items of the history each hit's `because` lists, those that add most; the others "
        "are one entry.",
        minimum=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model == NEXT_ITEM and self.recent is not None:
            raise QkvError(
                "the next-item model uses the order of the history already: leave `recent` out"
            )


@dataclass(frozen=True, kw_only=True)
class SimilarQuestion(Question):
    """Which items are like these?"""

    items: Sequence[Id] = option("ids", "An id or title.", MISSING)
    exclude: Sequence[Id] = option("ids", "An id or title to leave out.", ())


# The options of `evaluate_recommend` and `tune`, which rank no items.
MEASUREMENTS = {
    "trials": Option(
        "whole",
        "How many random settings of the embeddings to try, and a third as many of the neighbours.",
        minimum=1,
    ),
    "minutes": Option("number", "Stop after this many minutes.", minimum=0, is_open=True),
    "users": Option("whole", "How many users to evaluate, 0 for all.", minimum=0),
    "random_state": Option("whole", "Random seed.", 0, minimum=0),
}
# All options by name. `heads`, which two questions have, is that of a search here.
OPTIONS = {
    **options_of(SimilarQuestion),
    **options_of(RecommendQuestion),
    **options_of(SearchQuestion),
    **MEASUREMENTS,
}


def check(**options: Any) -> None:
    """Raise `DataError`, which names the option, for the first value outside its limits.

    >>> check(k=10, recent=None)
    >>> check(k=10, damping=float("nan"))
    Traceback (most recent call last):
    qkvsearch.errors.DataError: `damping` must be a number from 0 to 1,000,000,000, not nan
    """
    for name, value in options.items():
        OPTIONS[name].check(name, value)


def check_page(k: int | None, offset: int) -> None:
    """Raise `DataError` for the page of a listing, whose `k` may be None: all rows."""
    check(offset=offset)
    if k is not None:
        check(k=k)

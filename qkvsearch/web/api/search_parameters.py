"""What one search over HTTP asks for, which is also what is logged of it."""

from typing import Annotated

from pydantic import Field

from qkvsearch.web.api.filters import Filters
from qkvsearch.web.api.request_parameters import (
    MAX_OFFSET,
    ExplainLevel,
    Flag,
    LimitedText,
    RankingParameters,
    option,
)

EXPLAIN_OR_SMALLEST = Field(
    description="Each score's parts, which add up to it, and reasons in words. `smallest`: also "
    "the fewest words of the query, or items of the history, without which the hit would not be "
    "among the hits asked for. The items may then not be recommended either."
)


class SearchParameters(RankingParameters):
    """One search."""

    q: Annotated[
        LimitedText,
        Field(
            description='Words; "a phrase", -word, field:word and word* must match. "" browses.',
            examples=["sourdough bread"],
            exclude=True,
        ),
    ]
    explain: Annotated[ExplainLevel, EXPLAIN_OR_SMALLEST] = False  # type: ignore[assignment]
    heads: LimitedText | None = option("heads")
    user: LimitedText | None = option("user")
    strict_user: Flag = option("strict_user")
    prefix: Flag = option("prefix")
    facets: LimitedText = option("facets", "")
    filter: Filters = ()
    snippet: Flag = option("snippet")
    passages: int = option("passages", le=MAX_OFFSET)
    matches: Annotated[
        Flag,
        Field(description="For each column, the words that match the query.", exclude=True),
    ] = False
    anyway: Flag = option("anyway")
    rules: Flag = option("rules")
    weak: Annotated[
        Flag, Field(description="Whether weak matches are listed as well, below all others.")
    ] = False
    sort: LimitedText | None = option("sort")

    @property
    def is_slow(self) -> bool:
        """Snippets and matches read the whole texts of the hits, as explanations do."""
        return bool(self.explain) or self.snippet or self.matches

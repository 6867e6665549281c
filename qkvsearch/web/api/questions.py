"""What the questions have in common: their parameters, each with what it means."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from qkvsearch.search.options import OPTIONS

# Characters of a text, and of a condition; how far a listing goes.
LONGEST, FARTHEST = 2000, 2**31 - 1
# Items that a question names, and questions in one request.
MAX_NAMES, MAX_BATCH = 1000, 100
# Of many items that cannot be read the first alone is reported: a million reports take seconds.
NAMES = Field(max_length=MAX_NAMES, fail_fast=True)
BATCH = Field(max_length=MAX_BATCH, fail_fast=True)
Text = Annotated[str, Field(max_length=LONGEST)]
Name = Annotated[str, Field(max_length=LONGEST, description="An id or a title.")]
Names = Annotated[tuple[Name, ...], NAMES]
# Where a body is JSON, an id that is a number may be sent as one.
AnyId = Name | Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
AnyIds = Annotated[tuple[AnyId, ...], NAMES]


def option(name: str, default: Any = None, **more: Any) -> Any:
    """Return the field of an option that Python and the command line have as well, with `default`
    in place of theirs where it is not None. more: what the API alone says of it.
    """
    shared = OPTIONS[name]
    limits = {"gt" if shared.is_open else "ge": shared.minimum, "le": shared.maximum}
    return Field(
        default=shared.default if default is None else default,
        description=shared.help,
        **{**{key: limit for key, limit in limits.items() if limit is not None}, **more},
    )


Count = Annotated[int, option("k")]
Offset = Annotated[int, option("offset", le=FARTHEST)]
Where = Annotated[Text | None, option("where")]
Fields = Annotated[Text, option("fields", "")]


def example_of(place: str) -> dict[str, str]:
    """What OpenAPI says of a parameter of which only the catalog has examples: "items.id" is the
    column `id` of the listing at `items`. /docs asks for it there.
    """
    return {"x-example-of": place}


ItemPath = Annotated[
    str, Path(description="An id or a title.", json_schema_extra=example_of("items.id"))
]
UserPath = Annotated[
    str, Path(description="A user of the log.", json_schema_extra=example_of("users.id"))
]


class QueryParameters(BaseModel):
    """The parameters of one question, by the names that the engine has for them."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_many(cls, data: Any) -> Any:
        """More keys than there are parameters are one error, not one each."""
        if isinstance(data, dict) and len(data) > len(cls.model_fields):
            unknown = next(name for name in data if name not in cls.model_fields)
            raise PydanticCustomError("unknown", "unknown parameter {name}", {"name": unknown})
        return data

    def options(self, *without: str) -> dict[str, Any]:
        """As they are handed to the engine."""
        return self.model_dump(exclude=set(without))


def _few(given: Any) -> Any:
    if isinstance(given, dict) and len(given) > MAX_NAMES:
        raise PydanticCustomError("too_long", "at most {n} items", {"n": MAX_NAMES})
    return given


# pydantic reads all of an object before it counts its keys.
Few = BeforeValidator(_few)


class RankedQuestion(QueryParameters):
    """Which of the hits, and what is shown of them."""

    k: Count = 10
    where: Where = None
    fields: Fields = ""
    offset: Offset = 0
    min_weight: float = option("min_weight")
    temperature: float | None = option("temperature", le=1e9)
    explain: Annotated[
        bool, Field(description="Each score's parts, which add up to it, and reasons in words.")
    ] = False


class ListedQuestion(QueryParameters):
    """Which rows of a listing."""

    where: Where = None
    k: Count = 20
    offset: Offset = 0

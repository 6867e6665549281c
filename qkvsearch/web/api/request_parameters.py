"""Parameters that several routes share, with their limits and descriptions."""

from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from qkvsearch.rank.questions import OPTIONS, SMALLEST, Question, options_of
from qkvsearch.rank.request_limits import MAX_LENGTH, MAX_NAMES, MAX_OFFSET, sent_id

# Questions in a batch.
MAX_BATCH = 100
# Of many items that cannot be read the first alone is reported: a million reports take seconds.
NAMES = Field(max_length=MAX_NAMES, fail_fast=True)
BATCH = Field(max_length=MAX_BATCH, fail_fast=True)
LimitedText = Annotated[str, Field(max_length=MAX_LENGTH)]
Name = Annotated[str, Field(max_length=MAX_LENGTH, description="An id or a title.")]
HeadNames = Annotated[tuple[Name, ...], NAMES]


SentNumber = Annotated[float, Field(ge=-(2**63), lt=2**63)]


# Where a body is JSON, an id that is a number may be sent as one. The description says so of every
# number, 7.5 too, which becomes a text before the types are checked.
AnyId = Annotated[
    Name | Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)],
    BeforeValidator(sent_id, json_schema_input_type=Name | SentNumber),
]
AnyIds = Annotated[tuple[AnyId, ...], NAMES]


def option(name: str, default: Any = None, *, of: type[Question] | None = None, **more: Any) -> Any:
    """Return the field of an option of a question, with `default` in place of the question's where
    it is not None. of: the question, where `OPTIONS` has the option of another one. more: arguments
    of the field that only the API has.
    """
    shared = OPTIONS[name] if of is None else options_of(of)[name]
    limits: dict[str, Any] = {}
    if shared.minimum is not None:
        limits["gt" if shared.is_open else "ge"] = shared.minimum
    if shared.maximum is not None:
        limits["le"] = shared.maximum
    return Field(
        default=shared.default if default is None else default,
        description=shared.help,
        **limits | more,
    )


HitCount = Annotated[int, option("k")]
Offset = Annotated[int, option("offset", le=MAX_OFFSET)]
Where = Annotated[LimitedText | None, option("where")]
Fields = Annotated[LimitedText, option("fields", "")]


# The examples are ids of a sample.
ItemPath = Annotated[str, Path(description="An id or a title.", examples=["v001"])]
UserPath = Annotated[str, Path(description="A user of the log.", examples=["w001"])]


def _refuse_number(value: Any) -> Any:
    """Refuse 0.0 in a body for false; in a query, "0" is one of its spellings."""
    if type(value) in (int, float):
        raise PydanticCustomError("bool_type", "true or false")
    return value


Flag = Annotated[bool, BeforeValidator(_refuse_number)]


def _read_level(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Report one error for a value that is of neither kind."""
    try:
        return read(value)
    except ValidationError:
        message = "true, false or {word}"
        raise PydanticCustomError("explain", message, {"word": SMALLEST}) from None


# Whether to explain, or the one word for more of it.
ExplainLevel = Annotated[Literal["smallest"] | Flag, WrapValidator(_read_level)]


# The types of parameters that are numbers.
NUMBERS = (int, float, int | None, float | None)


class Parameters(BaseModel):
    """Parameters by their names in the engine. Those with `exclude=True` are the API's own."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_many(cls, data: Any) -> Any:
        """Report more keys than there are parameters as one error, not one each."""
        if isinstance(data, dict) and len(data) > len(cls.model_fields):
            unknown = next(name for name in data if name not in cls.model_fields)
            raise PydanticCustomError("unknown", "unknown parameter {name}", {"name": unknown})
        return data

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_yes_or_no(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse true and false in a body for 1 and 0."""
        field = cls.model_fields[str(info.field_name)]
        if isinstance(value, bool) and field.annotation in NUMBERS:
            raise PydanticCustomError("number_type", "a number, not true or false")
        return value

    def options(self) -> dict[str, Any]:
        """Return the arguments for the engine."""
        return self.model_dump()


def _check_size(value: Any) -> Any:
    if isinstance(value, dict) and len(value) > MAX_NAMES:
        raise PydanticCustomError("too_long", "at most {n} items", {"n": MAX_NAMES})
    return value


# pydantic reads all of an object before it counts its keys.
LimitedSize = BeforeValidator(_check_size)


class RankingParameters(Parameters):
    """Which of the hits, and what is shown of them."""

    k: HitCount = 10
    where: Where = None
    fields: Fields = ""
    distinct: LimitedText | None = option("distinct")
    offset: Offset = 0
    temperature: float | None = option("temperature", le=1e9)
    explain: Annotated[
        Flag, Field(description="Each score's parts, which add up to it, and reasons in words.")
    ] = False

    @property
    def is_slow(self) -> bool:
        """Whether the answer takes the time of an explanation."""
        return bool(self.explain)

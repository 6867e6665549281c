"""The arguments of a tool: their JSON Schema, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from typing import Any

from qkvsearch._utils.validation import check_text, is_whole, require
from qkvsearch.errors import QkvError, suggest
from qkvsearch.rank.options import Option, as_list
from qkvsearch.rank.request_limits import (
    MAX_HITS,
    MAX_LENGTH,
    MAX_NAMES,
    MAX_OFFSET,
    MAX_RANK,
    sent_id,
)

Options = Mapping[str, Option]
Schema = dict[str, Any]
# Kinds of options whose values are names.
NAMES = ("names", "heads")
# Whole numbers that JSON readers agree on.
LARGEST = 2**63
# The schema leaves out how long texts and lists may be: a model pays for each word of it.
_TEXT: Schema = {"type": "string"}
_ID: Schema = {"anyOf": [_TEXT, {"type": "integer"}]}
# The greatest value that a tool takes of an option, where the option itself has none.
MOST: Mapping[str, float] = {
    "k": MAX_HITS,
    "passages": MAX_HITS,
    "offset": MAX_OFFSET,
    "rank": MAX_RANK,
}


def schema_of(options: Options, *, with_help: bool = True) -> Schema:
    """Return the JSON Schema of a tool's arguments. with_help: with what each one means.

    >>> schema_of({"query": Option("text", "The text.", MISSING)})["required"]
    ['query']
    """
    required = [name for name, option in options.items() if option.default is MISSING]
    return {
        "type": "object",
        "properties": {
            name: _property(name, option, with_help) for name, option in options.items()
        },
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _property(name: str, option: Option, with_help: bool) -> Schema:
    """Return the schema of one argument."""
    found = _value_schema(name, option)
    if with_help:
        found["description"] = option.help
        if option.default and option.default is not MISSING:
            found["default"] = option.default
    return found


def _value_schema(name: str, option: Option) -> Schema:
    match option.kind:
        case "flag":
            return {"type": "boolean"}
        case "whole":
            return {"type": "integer", **_limits(name, option)}
        case "number":
            return {"type": "number", **_limits(name, option)}
        case "choice" | "reasons":
            return {"type": "string", "enum": list(option.choices)}
        case "id":
            return dict(_ID)
        case "ids":
            return {"type": "array", "items": _ID}
        case "names" | "heads":
            return {"type": "array", "items": _TEXT}
        case "ratings":
            return {"type": "object", "additionalProperties": {"type": "number"}}
        case "text" | "condition":
            return dict(_TEXT)


def _limits(name: str, option: Option) -> Schema:
    limits: Schema = {}
    if option.minimum is not None:
        limits["exclusiveMinimum" if option.is_open else "minimum"] = option.minimum
    most = MOST.get(name, option.maximum)
    if most is not None:
        limits["maximum"] = most
    return limits


def read_arguments(options: Options, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a client sent, by name. null stands for one that is left out.

    Raises `QkvError`, which names the argument, for an unknown one, a missing one, and a value that
    the option does not take or that is too long.

    >>> read_arguments({"item": Option("id", "An id.", MISSING)}, {"item": 7.0})
    {'item': 7}
    >>> read_arguments({"item": Option("id", "An id.", MISSING)}, {"itm": 7})
    Traceback (most recent call last):
    qkvsearch.errors.QkvError: there is no argument 'itm'; did you mean item? (arguments: item)
    """
    for name in given:
        if name not in options:
            known = ", ".join(options)
            near = suggest(name[:MAX_LENGTH], list(options))
            raise QkvError(f"there is no argument {name[:MAX_LENGTH]!r}{near} (arguments: {known})")
    for name, option in options.items():
        if option.default is MISSING and given.get(name) is None:
            raise QkvError(f"`{name}` is missing: {option.help}")
    return {
        name: _read(name, options[name], value)
        for name, value in given.items()
        if value is not None
    }


def _read(name: str, option: Option, value: Any) -> Any:
    """Return one value, an id as the catalog has it. Raises `QkvError` beyond a limit."""
    if option.kind == "id":
        return _check_size(name, sent_id(value))
    if option.kind == "ids":
        return [_check_size(name, sent_id(each)) for each in _listed(name, value)]
    if option.kind in NAMES and not isinstance(value, str):
        return [check_text(name, _check_size(name, each)) for each in _listed(name, value)]
    if option.kind == "ratings" and isinstance(value, Mapping):
        _check_count(name, len(value))
        return {_check_size(name, item): rating for item, rating in value.items()}
    if option.kind == "condition":
        check_text(name, value)
    _check_size(name, value)
    option.check(name, value)
    most = MOST.get(name)
    if most is not None and is_whole(value) and value > most:
        advice = "; `offset` goes on" if name == "k" else ""
        raise QkvError(f"`{name}`: at most {most:,} at once{advice}")
    return value


def _listed(name: str, value: Any) -> list[Any]:
    """Return the values of a list; one alone is a list of one. Raises `QkvError` for too many."""
    values = [value] if isinstance(value, Mapping) else as_list(value)
    _check_count(name, len(values))
    return values


def _check_count(name: str, n: int) -> None:
    if n > MAX_NAMES:
        raise QkvError(f"`{name}`: {n:,} are too many: at most {MAX_NAMES:,} at once")


def _check_size(name: str, value: Any) -> Any:
    """Return a value. Raises `QkvError` for a text or a number that is too long."""
    if isinstance(value, str) and len(value) > MAX_LENGTH:
        raise QkvError(f"`{name}`: a text has at most {MAX_LENGTH:,} characters")
    if is_whole(value):
        require(-LARGEST <= value < LARGEST, name, value, "a whole number of 64 bits")
    return value

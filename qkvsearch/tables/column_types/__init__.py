"""The types of columns. A type is one object, in a file of its own and in `TYPES`.

A type says how its cells are recognized and read, compared in a condition, counted in facets, and
shown. A new type is a subclass of `ColumnType` and an entry of `TYPES`; nothing else lists them.
"""

from __future__ import annotations

from qkvsearch.tables.column_types.column_type import ColumnType
from qkvsearch.tables.column_types.date import DateType
from qkvsearch.tables.column_types.list_type import ListType
from qkvsearch.tables.column_types.number import NumberType
from qkvsearch.tables.column_types.text_type import TextType
from qkvsearch.tables.column_types.yes_no import YesNoType

__all__ = ["NAMES", "TEXT", "TYPES", "ColumnType", "text_read", "type_named"]

# A column without a requested type gets the first one that nearly all of its cells have.
TYPES: tuple[ColumnType, ...] = (NumberType(), DateType(), YesNoType(), ListType(), TextType())
# Any cell is text.
TEXT = TYPES[-1]
NAMES = tuple(each.name for each in TYPES)
_BY_NAME = {each.name: each for each in TYPES}


def type_named(name: str) -> ColumnType:
    """Return a type by its name.

    >>> type_named("yes/no").entries(1)
    ['yes']
    """
    return _BY_NAME[name]


def text_read(cell: object, type_name: str) -> str:
    """Return what search reads of a cell of a type.

    >>> text_read("Rain|Snow", "list"), text_read("a|b", "text"), text_read(None, "text")
    ('Rain Snow', 'a|b', '')
    """
    return "" if cell is None else type_named(type_name).searched(cell)

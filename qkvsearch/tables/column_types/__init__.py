"""The types of columns. A type is one object, in a file of its own and in `TYPES`.

A type says how its cells are recognized and read, compared in a condition, counted in facets, and
shown. A new type is a subclass of `ColumnType` and an entry of `TYPES`: that is all it takes.

Some places name a type, where they do something for it alone. A new type is not among them, and
needs not be:

- `where.mismatch` advises what to write instead of a comparison that is refused, and has a general
  sentence for all other pairs. `where.types` knows the results of SQL's functions, and has().
- `tables.catalog` joins the short texts of a repeated item into a list, and the entries of lists.
- `tables.role_choice` reads ratings and weights as numbers, and times as dates.
- `tables.column_types.inference` notes percent signs before numbers.
- `rank.display` looks for links and images in texts; `engine.rows` looks for the date of an item
  in dates and numbers; `rank.query_notes` suggests conditions on numbers.
- The page (`web/static/search/cells.js`) writes a cell in one of the ways of
  `ColumnType.shown_as`. A way that is not among these is added there.
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


def text_read(cell: object, type_name: str, unit: str = "", original: str = "") -> str:
    """Return what search reads of a cell of a type. unit: of a column of numbers. original: what
    the cell was in the file, if it is not shown so.

    >>> text_read("Rain|Snow", "list"), text_read("a|b", "text"), text_read(None, "text")
    ('Rain Snow', 'a|b', '')
    >>> text_read(12.0, "number", "oz"), text_read(117, "number", "分钟")
    ('12 oz', '117分钟')
    >>> text_read("0960/1279", "date", original="Song dynasty (960–1279)")
    'Song dynasty (960–1279)'
    """
    if original and type_named(type_name).loses_words:
        return original
    if cell is None:
        return ""
    searched = type_named(type_name).searched(cell)
    if not unit:
        return searched
    return f"{searched} {unit}" if unit.isascii() else f"{searched}{unit}"

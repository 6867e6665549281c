"""A condition of SQL as a filter expression of Milvus, where both say the same of every row.

Blank cells are why not all is taken over as it stands: in SQL nothing compared with a blank is
true, and neither is its opposite. So a NOT is pushed down to the comparisons, which are turned
round one by one, and the two that may be true of a blank in Milvus ask for a cell first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sqlglot import exp

# Each comparison as Milvus spells it, its opposite, and what it is with its sides exchanged.
OPERATORS: dict[type[exp.Expression], tuple[str, type[exp.Expression], type[exp.Expression]]] = {
    exp.EQ: ("==", exp.NEQ, exp.EQ),
    exp.NEQ: ("!=", exp.EQ, exp.NEQ),
    exp.LT: ("<", exp.GTE, exp.GT),
    exp.GTE: (">=", exp.LT, exp.LTE),
    exp.GT: (">", exp.LTE, exp.LT),
    exp.LTE: ("<=", exp.GT, exp.GTE),
}
SAME = (exp.EQ, exp.NEQ)
LARGEST = 2**63 - 1


class Field(NamedTuple):
    """A column's field in Milvus and its type there: "INT64", "DOUBLE" or "VARCHAR"."""

    name: str
    kind: str


class Untranslatable(Exception):
    """A part that Milvus has not, or would read otherwise."""


def expression(
    tree: exp.Expression, values: Mapping[str, Any], field: Callable[[str], Field | None]
) -> str | None:
    """A condition for Milvus; None where it has no such condition. values: of its places. field():
    that of a column by the name in the condition, None where Milvus has none.

    Taken over are AND, OR and NOT, comparisons of a column with a value, BETWEEN, IN and IS NULL:
    of numbers, and of texts whether they are equal.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("NOT (year > 2000 OR name IS NULL)", dialect="sqlite")
    >>> expression(tree, {}, lambda name: Field(name, "INT64"))
    '(year <= 2000 and name is not null)'
    """
    try:
        return _Translation(values, field).of(tree, True)
    except Untranslatable:
        return None


class _Translation:
    def __init__(self, values: Mapping[str, Any], field: Callable[[str], Field | None]) -> None:
        self.values, self.field = values, field

    def of(self, node: exp.Expression, wanted: bool) -> str:
        """What holds where `node` is true, or with `wanted` False where it is false."""
        if isinstance(node, exp.Paren):
            return self.of(node.this, wanted)
        if isinstance(node, exp.Not):
            return self.of(node.this, not wanted)
        if isinstance(node, (exp.And, exp.Or)):
            word = " and " if isinstance(node, exp.And) is wanted else " or "
            parts = [self.of(part, wanted) for part in node.flatten()]  # type: ignore[arg-type]
            return f"({word.join(parts)})"
        if isinstance(node, exp.Between):
            return self._between(node, wanted)
        if isinstance(node, exp.In):
            return self._in(node, wanted)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return f"{self._column(node.this).name} is {'' if wanted else 'not '}null"
        if type(node) in OPERATORS:
            return self._compared(node, wanted)
        raise Untranslatable

    def _compared(self, node: exp.Expression, wanted: bool) -> str:
        kind, (left, right) = type(node), (node.this, node.expression)
        if not isinstance(left, exp.Column):
            kind, left, right = OPERATORS[kind][2], right, left
        kind = kind if wanted else OPERATORS[kind][1]
        field = self._column(left)
        if field.kind == "VARCHAR" and kind not in SAME:
            raise Untranslatable  # the order of texts and dates is the catalog's
        compared = f"{field.name} {OPERATORS[kind][0]} {self._value(right, field)}"
        return f"({field.name} is not null and {compared})" if kind is exp.NEQ else compared

    def _between(self, node: exp.Between, wanted: bool) -> str:
        field = self._column(node.this)
        if field.kind == "VARCHAR":
            raise Untranslatable
        low, high = (self._value(node.args[name], field) for name in ("low", "high"))
        if wanted:
            return f"({field.name} >= {low} and {field.name} <= {high})"
        return f"({field.name} < {low} or {field.name} > {high})"

    def _in(self, node: exp.In, wanted: bool) -> str:
        field = self._column(node.this)
        entries = ", ".join(self._value(entry, field) for entry in node.expressions)
        if wanted:
            return f"{field.name} in [{entries}]"
        return f"({field.name} is not null and {field.name} not in [{entries}])"

    def _column(self, node: exp.Expression) -> Field:
        found = self.field(node.name) if isinstance(node, exp.Column) else None
        if found is None:
            raise Untranslatable
        return found

    def _value(self, node: exp.Expression, field: Field) -> str:
        value = self._literal(node)
        if field.kind == "VARCHAR":
            if not isinstance(value, str):
                raise Untranslatable
            return json.dumps(value, ensure_ascii=False)
        if isinstance(value, str) or not abs(value) <= LARGEST:
            raise Untranslatable
        if field.kind == "INT64":
            if value != int(value):
                raise Untranslatable
            return str(int(value))
        return repr(float(value))

    def _literal(self, node: exp.Expression) -> str | float:
        if isinstance(node, exp.Paren):
            return self._literal(node.this)
        if isinstance(node, exp.Neg):
            value = self._literal(node.this)
            if isinstance(value, str):
                raise Untranslatable
            return -value
        if isinstance(node, exp.Placeholder):
            given = self.values.get(str(node.this))
            if isinstance(given, (bool, int, float, str)):
                return given
        elif isinstance(node, exp.Boolean):
            return int(node.this)
        elif isinstance(node, exp.Literal):
            if node.is_string:
                return str(node.name)
            return int(node.name) if node.name.isdecimal() else float(node.name)
        raise Untranslatable

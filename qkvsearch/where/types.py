"""Check the types of a condition: what each part is, and whether the parts can be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any, TypeAlias

from sqlglot import exp

from qkvsearch.errors import QkvError, suggest
from qkvsearch.tables.catalog_columns import TRUTH_VALUES, CatalogColumns, StoredColumn
from qkvsearch.tables.column_types import TEXT, TYPES, type_named
from qkvsearch.where.functions import EARLIEST, LATEST, LIST_SEPARATOR
from qkvsearch.where.guarded import PURE_FUNCTIONS, no_such_function
from qkvsearch.where.mismatch import (
    NUMBERS,
    SEARCHED,
    CellsOfColumn,
    Value,
    check_apart,
    check_pair,
    misfit,
    shown,
    written,
)
from qkvsearch.where.parameters import for_sqlite

# The first one of each is what a message asks for.
TEXTS = (TEXT.name, *(each.name for each in TYPES[:-1] if not each.is_numeric))
ANY = (*TEXTS, *NUMBERS)

# Which of two values is more.
ORDERING = (exp.GT, exp.GTE, exp.LT, exp.LTE)
COMPARISONS = (
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.Is,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
)
ARITHMETIC = (
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.Mod,
    exp.Neg,
    exp.BitwiseAnd,
    exp.BitwiseOr,
    exp.BitwiseNot,
    exp.BitwiseLeftShift,
    exp.BitwiseRightShift,
)
# For each operator and function: the types of its arguments, by the parser's names, and its result.
# LITERAL: a short text in quotes, where two long texts would take quadratic time.
LITERAL, MAX_LITERAL = ("literal",), 100
SIGNATURES: dict[type[exp.Expression], tuple[dict[str, tuple[str, ...]], str]] = {
    exp.Abs: ({"this": NUMBERS}, "number"),
    exp.DPipe: ({"this": ANY, "expression": ANY}, "text"),
    exp.Escape: ({"this": ANY, "expression": LITERAL}, "yes/no"),
    exp.Glob: ({"this": TEXTS, "expression": TEXTS}, "yes/no"),
    exp.Length: ({"this": TEXTS}, "number"),
    exp.Like: ({"this": TEXTS, "expression": TEXTS}, "yes/no"),
    exp.Lower: ({"this": TEXTS}, "text"),
    exp.Replace: ({"this": TEXTS, "expression": TEXTS, "replacement": TEXTS}, "text"),
    exp.Round: ({"this": NUMBERS, "decimals": NUMBERS}, "number"),
    exp.StrPosition: ({"this": TEXTS, "substr": TEXTS}, "number"),
    exp.Substring: ({"this": TEXTS, "start": NUMBERS, "length": NUMBERS}, "text"),
    exp.Trim: ({"this": TEXTS, "expression": LITERAL}, "text"),
    exp.Typeof: ({"this": ANY}, "text"),
    exp.Unicode: ({"this": TEXTS}, "number"),
    exp.Upper: ({"this": TEXTS}, "text"),
    **{kind: ({"this": NUMBERS, "expression": NUMBERS}, "number") for kind in ARITHMETIC},
}
CASTS = {
    "number": (exp.DType.INT, exp.DType.BIGINT, exp.DType.DOUBLE, exp.DType.FLOAT),
    "text": (exp.DType.TEXT, exp.DType.VARCHAR),
}

# Identifiers of columns, each with the function that its cells are compared by.
Ends: TypeAlias = list[tuple[exp.Expression, str]]


def check_types(
    tree: exp.Expression,
    parameters: Mapping[str, Any],
    columns: CatalogColumns,
    cells: CellsOfColumn,
) -> tuple[dict[str, StoredColumn], Ends]:
    """Return the columns that the condition reads, by their names in it; and for each identifier of
    an uncertain date that < or > compares, the function of the end that it compares: an item
    matches where its date may be less, or more.

    cells: a function that yields the cells of a column, for error messages. Raises `QkvError` for
    an unknown column, for what cannot be checked, and for types that cannot be compared.
    """
    check = _Types(parameters, columns, cells)
    check.condition(tree)
    return check.used, check.ends


class _Types:
    """A check of the whole tree, which collects the columns in `used`."""

    def __init__(
        self, parameters: Mapping[str, Any], columns: CatalogColumns, cells: CellsOfColumn
    ):
        self.parameters = parameters
        self.columns = columns
        self.cells = cells
        self.used: dict[str, StoredColumn] = {}
        self.ends: Ends = []

    def condition(self, node: exp.Expression) -> Value:
        """Check a part that must be true or false; a number is false if it is 0."""
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, (exp.And, exp.Or)):  # long chains are no deep recursion
            for part in node.flatten():
                self.condition(part)  # type: ignore[arg-type]
            return Value("yes/no", node)
        if isinstance(node, exp.Not):
            self.condition(node.this)
            return Value("yes/no", node)
        value = self.value(node)
        if value.type in (None, *NUMBERS):
            return value
        raise QkvError(f"{shown(value, self.cells)}, and a condition is needed: compare it")

    def value(self, node: exp.Expression) -> Value:
        """Check a part and everything in it, and return its type."""
        if isinstance(node, (exp.And, exp.Or, exp.Not)):
            return self.condition(node)
        if isinstance(node, COMPARISONS):
            return self._compared(node)
        if type(node) in SIGNATURES:
            return self._called(node)
        read = READ.get(type(node))
        if read is None:
            raise _unknown(node)
        return read(self, node)

    def _compared(self, node: exp.Expression) -> Value:
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
            self.condition(node.this)
            return Value("yes/no", node)
        left, right = self.value(node.this), self.value(node.expression)
        is_null_safe = isinstance(node, (exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ))
        is_ordering = isinstance(node, ORDERING)
        check_pair(left, right, self.cells, is_null_safe, is_ordering)
        if isinstance(node, (exp.LT, exp.GT)):
            low, high = (left, right) if isinstance(node, exp.LT) else (right, left)
            for value, end in ((low, EARLIEST), (high, LATEST)):
                if value.column is not None and value.column.is_uncertain:
                    self.ends.append((value.node.this, end))
        return Value("yes/no", node)

    def _called(self, node: exp.Expression) -> Value:
        accepted, result = SIGNATURES[type(node)]
        for name, argument in node.args.items():
            if isinstance(argument, exp.Expression):
                if name not in accepted:
                    raise _unknown(node)
                self._fits(self.value(argument), accepted[name], node)
        return Value(result, node)

    def _fits(self, value: Value, accepted: tuple[str, ...], node: exp.Expression) -> None:
        """Raise `QkvError` if an argument has none of the accepted types."""
        if accepted == LITERAL:
            if not isinstance(value.literal, str):
                raise QkvError(f"in {written(node)} this is a text in quotes: {value.sql}")
            if len(value.literal) > MAX_LITERAL:
                raise QkvError(f"{written(node)}: at most {MAX_LITERAL} characters are trimmed")
        elif value.type not in (None, *accepted):
            raise misfit(value, accepted[0], node, self.cells)

    def _column(self, node: exp.Expression) -> Value:
        name = node.name
        is_parameter = name.startswith("$") and not node.this.quoted
        if node.args.get("table") or is_parameter:
            raise _unknown(node)
        try:
            column = self.columns.find(name)
        except QkvError:
            near = suggest(name, self.columns.sql_names)
            hint = "" if near and not node.this.quoted else " (texts stand in single quotes)"
            raise QkvError(f"no such column: {name}{hint}{near}") from None
        if name.casefold() in TRUTH_VALUES:
            raise QkvError(
                f"{written(node)} is a truth value in SQL: write {self.columns.sql_name(column)}"
            )
        self.used[name] = column
        return Value(column.type, node, column)

    def _literal(self, node: exp.Expression) -> Value:
        if node.is_string:
            return Value("text", node, literal=node.name)
        try:
            return Value("number", node, literal=float(node.name))
        except ValueError:  # 2e, whose exponent is missing
            raise QkvError(f"{node.name} is no number") from None

    def _boolean(self, node: exp.Expression) -> Value:
        return Value("yes/no", node, literal=int(node.this))

    def _null(self, node: exp.Expression) -> Value:
        return Value(None, node, is_null=True)

    def _placeholder(self, node: exp.Expression) -> Value:
        value = self.parameters[str(node.this)]
        if value is None:
            return Value(None, node, is_null=True)
        return Value(_type_of(value), node, literal=value)

    def _paren(self, node: exp.Expression) -> Value:
        return self.value(node.this)

    def _between(self, node: exp.Expression) -> Value:
        value = self.value(node.this)
        for bound in (node.args["low"], node.args["high"]):
            check_pair(value, self.value(bound), self.cells, is_ordering=True)
        return Value("yes/no", node)

    def _in(self, node: exp.Expression) -> Value:
        if any(node.args.get(name) for name in node.args if name not in ("this", "expressions")):
            raise _unknown(node)
        value = self.value(node.this)
        entries = [self.value(entry) for entry in node.expressions]
        for entry in entries:
            check_pair(value, entry, self.cells)
        if value.type is not None and type_named(value.type).equals_beginnings:
            check_apart([str(for_sqlite(entry.literal)) for entry in entries])
        return Value("yes/no", node)

    def _case(self, node: exp.Expression) -> Value:
        base = node.args.get("this")
        compared = None if base is None else self.value(base)
        for branch in node.args["ifs"]:
            if compared is None:
                self.condition(branch.this)
            else:
                check_pair(compared, self.value(branch.this), self.cells)
        results = [branch.args["true"] for branch in node.args["ifs"]]
        return self._one_of([*results, node.args.get("default")], node)

    def _iif(self, node: exp.Expression) -> Value:
        self.condition(node.this)
        return self._one_of([node.args.get("true"), node.args.get("false")], node)

    def _any_of(self, node: exp.Expression) -> Value:
        """Check coalesce, ifnull, nullif, max or min."""
        others = [*node.expressions, node.args.get("expression")]
        return self._one_of([node.this, *others], node)

    def _one_of(self, parts: Iterable[exp.Expression | None], node: exp.Expression) -> Value:
        """Check a function that returns one of several values: they must be of one type."""
        first = Value(None, node)
        for part in parts:
            value = Value(None, node) if part is None else self.value(part)
            if value.type is not None:
                if first.type is not None:
                    check_pair(first, value, self.cells, is_null_safe=True)
                first = value if first.column is None else first
        return Value(first.type, node)

    def _cast(self, node: exp.Expression) -> Value:
        value, to = self.value(node.this), node.args["to"].this
        kind = next((kind for kind, names in CASTS.items() if to in names), None)
        if kind is None:
            raise QkvError(f"{written(node)}: cast to TEXT, INTEGER or REAL")
        if kind == "number":
            self._fits(value, NUMBERS, node)
        return Value(kind, node)

    def _collated(self, node: exp.Expression) -> Value:
        value = self.value(node.this)
        self._fits(value, tuple(SEARCHED), node)
        return value

    def _anonymous(self, node: exp.Expression) -> Value:
        """Check a function that the parser does not know; has() is ours."""
        if str(node.this).lower() != "has":
            raise _unknown(node)
        if len(node.expressions) != 2:
            raise QkvError("has() takes a column and an entry, as in has(genres, 'Drama')")
        of, entry = map(self.value, node.expressions)
        if of.column is None or of.type != "list":
            name = of.column.name if of.column else of.sql
            raise QkvError(
                f"has() looks into a column of lists, and {shown(of, self.cells)}; build with "
                f"`types` {name}:list where one sign parts the entries"
            )
        self._fits(entry, ("text",), node)
        if isinstance(entry.literal, str) and LIST_SEPARATOR in entry.literal:
            raise QkvError("has() takes one entry: join several by OR or AND")
        return Value("yes/no", node)


READ: dict[type[exp.Expression], Callable[[_Types, Any], Value]] = {
    exp.Anonymous: _Types._anonymous,
    exp.Between: _Types._between,
    exp.Boolean: _Types._boolean,
    exp.Case: _Types._case,
    exp.Cast: _Types._cast,
    exp.Coalesce: _Types._any_of,
    exp.Collate: _Types._collated,
    exp.Column: _Types._column,
    exp.Greatest: _Types._any_of,
    exp.If: _Types._iif,
    exp.In: _Types._in,
    exp.Least: _Types._any_of,
    exp.Literal: _Types._literal,
    exp.Null: _Types._null,
    exp.Nullif: _Types._any_of,
    exp.Paren: _Types._paren,
    exp.Placeholder: _Types._placeholder,
}


def _type_of(value: Any) -> str:
    """Return the type of the value of a placeholder."""
    if isinstance(value, bool):
        return "yes/no"
    if isinstance(value, str):
        return "text"
    if isinstance(value, date):
        return "date"
    return "number"


def _unknown(node: exp.Expression) -> QkvError:
    """Return the error for a part that cannot be checked."""
    part = written(node)
    name = part.partition("(")[0].lower()
    if isinstance(node, (exp.Max, exp.Min)):
        return QkvError(
            f"{part}: {name}() compares several values of an item here, as in "
            f"{name}(price, shipping); nothing is computed over all items"
        )
    if isinstance(node, exp.Func):
        if name in PURE_FUNCTIONS:
            return QkvError(f"{part}: {name}() does not take this here")
        return no_such_function(part)
    return QkvError(f"{part} cannot be part of a condition")

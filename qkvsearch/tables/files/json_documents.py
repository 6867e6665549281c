"""The rows of a JSON document: of an array of objects, or of one object that holds many of them.

Programs write tables as one object in several ways. Each becomes rows, the first that fits:

| document                                           | rows                                        |
|----------------------------------------------------|---------------------------------------------|
| `[{"id": 7}, {"id": 8}]`                           | the objects                                 |
| `{"columns": ["id"], "data": [[7], [8]]}`          | of pandas: `orient="split"`                 |
| `{"hits": {"hits": [{"_id": "7", "_source": …}]}}` | of Elasticsearch: `_id`, and the `_source`  |
| `{"data": {"items": {"edges": [{"node": {…}}]}}}`  | of GraphQL: the nodes                       |
| `{"id": 7, "title": "Vase", "makers": [{…}]}`      | one row: it has an id itself                |
| `{"id": {"0": 7, "1": 8}, "title": {"0": …}}`      | of pandas: an object for each column        |
| `{"p1": {"title": …}, "p2": {"title": …}}`         | the objects, with the key as id             |
| `{"id": [7, 8], "title": ["Vase", "Bowl"]}`        | a list for each column                      |
| `{"total": 2, "products": [{…}, {…}]}`             | the only list or object of objects          |
| `{"films": [{…}], "people": [{…}]}`                | an error, which names both                  |
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from qkvsearch.errors import DataError, listed_names
from qkvsearch.tables.columns import named
from qkvsearch.tables.files.repeated_keys import RepeatedKey
from qkvsearch.terminal import shorten

# What a column with the keys of an object is called, and where its rows have an id of their own.
KEY, OTHER_KEY = "id", "key"
# A hit of Elasticsearch.
HIT_ID, SOURCE = "_id", "_source"
# The lines before those of documents in a file for Elasticsearch's bulk interface.
ACTIONS = ("index", "create", "update", "delete")
MAX_LISTED = 5


class DocumentRows(NamedTuple):
    """The rows of a document, and a sentence on where they were found; "" for an array."""

    rows: Sequence[Any]
    note: str = ""


class _FoundRows(NamedTuple):
    """Rows in a document. path: the keys that lead to them."""

    path: tuple[str, ...]
    rows: Sequence[Any]
    note: str


def rows_of_document(document: Any, label: str) -> DocumentRows:
    """Return the rows of a JSON document. Raises `DataError` where it is one object, and it is not
    clear which of its values are rows.

    >>> rows_of_document({"p1": {"title": "Vase"}, "p2": {"title": "Bowl"}}, "items.json").rows
    [{'id': 'p1', 'title': 'Vase'}, {'id': 'p2', 'title': 'Bowl'}]
    """
    if not isinstance(document, dict):
        return DocumentRows(document if isinstance(document, list) else [document])
    if _is_row(document):
        return DocumentRows([document])
    found = _found_in(document, (), label)
    if all(each.path[:1] in (("error",), ("errors",)) for each in found):
        _refuse_failure(document, label)
    if not found:
        return DocumentRows([] if _has_empty_list(document) else [document])
    if len(found) > 1:
        places = listed_names([".".join(each.path) for each in found], MAX_LISTED)
        raise DataError(
            f"{label}: one object, and the rows may be in {places}: save the one that has the "
            "items as a file of its own"
        )
    path, rows, note = found[0]
    if not path:
        return DocumentRows(rows, note)
    others = [key for key in document if key != path[0]]
    left_out = f"; left out: {listed_names(others, MAX_LISTED)}" if others else ""
    in_words = f", {note}" if note else ""
    return DocumentRows(rows, f"its rows are in {'.'.join(path)}{in_words}{left_out}")


def _refuse_failure(document: Mapping[str, Any], label: str) -> None:
    """Raise `DataError` for what a server answers in the place of rows where it fails."""
    failure = document.get("errors") or document.get("error")
    if failure:
        raise DataError(
            f"{label}: not the items, but the answer of a server that failed: "
            f"{shorten(json.dumps(failure, ensure_ascii=False))}"
        )


def _has_empty_list(value: Any) -> bool:
    """Return whether an object has an empty list, in the place where its rows would be."""
    if not isinstance(value, dict):
        return value == []
    return any(map(_has_empty_list, value.values()))


def _is_row(document: Mapping[str, Any]) -> bool:
    """Return whether an object is one row: it has an id, or a title and no list of items."""
    if _of_split(document) is not None:
        return False
    plain = [key for key, value in document.items() if not isinstance(value, dict | list)]
    if any(named(role, plain) for role in ("id", "user", "item")):
        return True
    lists = [value for value in document.values() if _are_objects(value)]
    has_items = any(_have_names(rows) for rows in lists)
    return bool(named("title", plain)) and not (len(lists) == 1 and has_items)


def _found_in(value: Any, path: tuple[str, ...], label: str) -> list[_FoundRows]:
    """Return all rows that an object may hold, by the place where they are."""
    if _are_objects(value):
        return [_FoundRows(path, _unwrapped(value), "")]
    if not isinstance(value, dict) or not value:
        return []
    found = _found_in_object(value, path, label)
    if found and isinstance(value, RepeatedKey):
        raise DataError(f"{label}: the key {value.key!r} occurs twice; write each key once")
    return found


def _found_in_object(value: dict[str, Any], path: tuple[str, ...], label: str) -> list[_FoundRows]:
    split = _of_split(value)
    if split is not None:
        return [_FoundRows(path, split, 'written by pandas with orient="split"')]
    if _are_rows(value.values()):
        if _are_columns(value):
            return [_FoundRows(path, _of_columns(value), "an object for each column")]
        return [_FoundRows(path, _keyed(value), "rows by their keys")]
    lists = _of_lists(value)
    if lists is not None:
        return [_FoundRows(path, lists, "a list for each column")]
    found = [_found_in(entry, (*path, key), label) for key, entry in value.items()]
    return [each for some in found for each in some]


# --- the kinds ---


def _are_objects(value: Any) -> bool:
    is_list = isinstance(value, list) and len(value) > 0
    return is_list and all(isinstance(entry, dict) for entry in value)


def _have_names(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether objects have ids or titles by their names."""
    keys = list(rows[0])
    return bool(named("id", keys) or named("title", keys))


def _are_rows(entries: Collection[Any]) -> bool:
    """Return whether all values of an object are rows, and none is an object of rows."""
    if not all(isinstance(entry, dict) for entry in entries):
        return False
    filled = [entry for entry in entries if entry]
    if len(filled) == 1 and _wraps_rows(filled[0]):
        return False
    return bool(filled) and all(map(_has_fields, filled))


def _wraps_rows(entry: Mapping[str, Any]) -> bool:
    """Return whether an object without a name of its own has a list of items, which may be empty,
    and numbers about them: `{"total": 2, "hits": [{"_id": "7", "_source": …}]}`.
    """
    plain = [key for key, value in entry.items() if not isinstance(value, dict | list)]
    if named("id", plain) or named("title", plain):
        return False
    lists = [_unwrapped(value) for value in entry.values() if _are_objects(value)]
    return any(map(_have_names, lists)) or [] in entry.values()


def _has_fields(entry: Mapping[str, Any]) -> bool:
    """Return whether an object has a value that is neither an object nor a list of some."""
    return any(not isinstance(v, dict) and not _are_objects(v) for v in entry.values())


def _of_split(document: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of a table that pandas wrote with orient="split"; None where it is none."""
    columns, data = document.get("columns"), document.get("data")
    if not isinstance(columns, list) or not isinstance(data, list):
        return None
    if not all(isinstance(row, list) and len(row) == len(columns) for row in data):
        return None
    names = [str(name) for name in columns]
    rows = [dict(zip(names, row, strict=True)) for row in data]
    index = document.get("index")
    if not isinstance(index, list) or len(index) != len(rows) or _is_counted(index):
        return rows
    return _with_keys(index, rows)


def _is_counted(keys: Sequence[Any]) -> bool:
    """Return whether keys are 0, 1, 2 and so on: the index of pandas, and no ids."""
    return [str(key) for key in keys] == [str(number) for number in range(len(keys))]


def _are_columns(document: Mapping[str, Any]) -> bool:
    """Return whether the objects in an object are columns, by their keys: pandas writes so."""
    keys, *others = [list(column) for column in document.values()]
    if any(other != keys for other in others):
        return False
    has_names = bool(named("id", list(document)) or named("title", list(document)))
    rows_have_names = bool(named("id", keys) or named("title", keys))
    return _is_counted(keys) or (has_names and not rows_have_names)


def _of_columns(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    keys = list(next(iter(document.values())))
    rows = [{name: column[key] for name, column in document.items()} for key in keys]
    return rows if _is_counted(keys) else _with_keys(keys, rows)


def _keyed(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    return _with_keys(list(document), list(document.values()))


def _with_keys(keys: Sequence[Any], rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with their keys, unless they have them already."""
    own = [row.get(KEY) for row in rows]
    if [str(key) for key in keys] == [str(key) for key in own]:
        return list(rows)
    name = KEY if all(key is None for key in own) else OTHER_KEY
    return [_prefixed(row, name, key) for key, row in zip(keys, rows, strict=True)]


def _prefixed(row: dict[str, Any], name: str, key: Any) -> dict[str, Any]:
    """Return a row with one more field; a row with a key twice stays one."""
    fields = {name: key, **row}
    return RepeatedKey(fields, row.key) if isinstance(row, RepeatedKey) else fields


def _of_lists(document: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of an object with a list of as many values for each column."""
    columns = list(document.values())
    if len(columns) < 2 or not all(isinstance(column, list) for column in columns):
        return None
    n_rows = len(columns[0])
    if n_rows < 2 or any(len(column) != n_rows or _are_objects(column) for column in columns):
        return None
    names = list(document)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


# --- Elasticsearch ---


def _unwrapped(rows: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    return [unwrapped_hit(row) for row in rows]


def unwrapped_hit(row: Any) -> Any:
    """Return the fields of a hit of Elasticsearch beside its id, and any other row as it is.

    >>> unwrapped_hit({"_index": "films", "_id": "7", "_source": {"title": "Heat"}})
    {'_id': '7', 'title': 'Heat'}
    """
    if not isinstance(row, dict) or not isinstance(row.get(SOURCE), dict) or HIT_ID not in row:
        return row
    return _prefixed(row[SOURCE], HIT_ID, row[HIT_ID])


def is_action(row: Any) -> bool:
    """Return whether a line says what the bulk interface of Elasticsearch does with the next one.

    >>> is_action({"index": {"_id": "7"}}), is_action({"index": 7})
    (True, False)
    """
    if not isinstance(row, dict) or len(row) != 1:
        return False
    ((action, about),) = row.items()
    if action not in ACTIONS or not isinstance(about, dict):
        return False
    return not about or any(key.startswith("_") for key in about)


class BulkRow(NamedTuple):
    """A row of a bulk file, or what a line means that is none."""

    number: int
    row: Any
    size: int
    is_deletion: bool = False


def rows_of_bulk(lines: Iterator[tuple[int, Any, int]]) -> Iterator[BulkRow]:
    """Yield the documents of a file for Elasticsearch's bulk interface, with their ids."""
    about: dict[str, Any] | None = None
    for number, line, size in lines:
        if about is None and is_action(line):
            ((action, about),) = line.items()
            if action == "delete":
                yield BulkRow(number, about, size, is_deletion=True)
                about = None
            continue
        document = line
        if isinstance(line, dict) and list(line) == ["doc"] and isinstance(line["doc"], dict):
            document = line["doc"]
        if about and HIT_ID in about and isinstance(document, dict):
            document = _prefixed(document, HIT_ID, about[HIT_ID])
        yield BulkRow(number, document, size)
        about = None

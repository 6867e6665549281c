"""Items by id or title."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from qkvsearch.errors import UnknownIdError
from qkvsearch.store.catalog.item_table import ItemTable
from qkvsearch.store.catalog.title_keys import (
    MAX_SHOWN,
    MAX_ZEROS,
    near_names,
    split_prefix,
    title_key,
)
from qkvsearch.tables.ids import id_text


class Titles:
    """The items of a build by what people call them: their ids and titles."""

    def __init__(self, items: ItemTable) -> None:
        self._items = items

    def item_position(self, item: Any) -> int:
        """Return the row of an item by id or title, as `find_item` does."""
        return self.find_item(item)[0]

    def find_item(self, item: Any) -> tuple[int, str]:
        """Return the row of an item by its id, or by its title where only one item has it; and a
        note where the text is the id of one item and the title of another, else "".

        A title may lack its year and its article. `id:300` is read as an id only, `title:300` as a
        title. Raises `UnknownIdError` with near matches, or with the ids to choose from.
        """
        name = id_text(item)
        by_id = self._by_id(item)
        prefix = ""
        if by_id is None:
            prefix, name = split_prefix(name)
            by_id = self._by_id(name) if prefix == "id" else None
        titled = [] if prefix == "id" else self._titled(name)
        if by_id is not None:
            # A number in Python is no title.
            others = sorted(set(titled) - {by_id}) if isinstance(item, str) else []
            return by_id, self._two_readings(name, by_id, others) if others else ""
        if len(titled) == 1:
            return titled[0], ""
        if titled:
            choices = ", ".join(map(self._label, titled))
            raise UnknownIdError(
                f"{name!r} is the title of {len(titled)} items; give an id: {choices}"
            )
        near = self._near(name)
        what = f"with the {prefix} " if prefix else ""
        advice = f"; did you mean {'; '.join(near)}?" if near else ""
        raise UnknownIdError(f"no item {what}{name!r}{advice}")

    def also_titles(self, rows: Mapping[str, int]) -> list[str]:
        """Return the texts that are titles of other items too. rows: the row of the item whose id
        each text is, −1 for a text that is no id.
        """
        keys = {text: title_key(text) for text, row in rows.items() if row >= 0}
        is_key = "key IN (SELECT value FROM json_each(?))"
        titled: dict[str, set[int]] = {}
        for row, key, _ in self._items.keyed_titles(is_key, json.dumps(list(keys.values()))):
            titled.setdefault(key, set()).add(row)
        return [text for text, key in keys.items() if titled.get(key, set()) - {rows[text]}]

    def _by_id(self, item: Any) -> int | None:
        text = id_text(item, self._items.have_whole_ids)
        return self._items.find_items([text]).get(text)

    def _titled(self, title: str) -> list[int]:
        """Return the rows of the items with exactly this title, or else with the same key."""
        same_key = list(self._items.keyed_titles("key = ?", title_key(title)))
        exact = [position for position, _, other in same_key if other == title]
        return exact or [position for position, *_ in same_key]

    def _near(self, name: str) -> list[str]:
        """Return ids that differ only in leading zeros, and similar titles and ids."""
        items = self._items
        bare = name.lstrip("0")
        padded = items.find_items("0" * n + bare for n in range(MAX_ZEROS) if name)
        keys = list(items.title_keys())
        ids = [str(id_) for _, id_ in items.column("id")]
        near = near_names(name, [key for _, key in keys], ids)
        rows = [keys[i][0] for kind, i in near if kind == "title"]
        spelled = iter(items.names(rows)[1])
        names = (next(spelled) if kind == "title" else ids[i] for kind, i in near)
        first = map(str, items.names(sorted(padded.values()))[0])
        return list(dict.fromkeys([*first, *names]))[:MAX_SHOWN]

    def _two_readings(self, name: str, by_id: int, titled: Sequence[int]) -> str:
        others = " and ".join(map(self._label, titled[:MAX_SHOWN]))
        return (
            f"{name!r} is the id of {self._label(by_id)} and the title of {others}: read as the "
            f"id; title:{name} is the other, and id:{name} says so"
        )

    def _label(self, position: int) -> str:
        """Return id, title and, where there is one, year of an item."""
        row = self._items.row(position)
        label = f"{row['id']} = {row['title']}"
        if "year" not in row or re.search(r"\(\d{4}\)", str(row["title"])):
            return label
        year = "" if row["year"] is None else row["year"]
        return f"{label} ({year})"

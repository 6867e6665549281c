"""The maps of the build that was asked for one last, each drawn once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qkvsearch._utils.forks import fork_lock
from qkvsearch.rank.loaded_build import LoadedBuild

if TYPE_CHECKING:
    from qkvsearch.engine.projection import ItemMap


class ItemMaps:
    """Maps by head. Those of a build are forgotten when another build is asked for one."""

    def __init__(self) -> None:
        # Drawing a map takes seconds. A second thread waits for the first instead of drawing too.
        self._lock = fork_lock()
        self._build_name = ""
        self._by_head: dict[str, ItemMap] = {}

    def of(self, build: LoadedBuild, head: str | None) -> ItemMap:
        """Return the map of a build by a head, None for the main one. Raises `QkvError`."""
        from qkvsearch.engine.projection import item_map, map_head

        name = map_head(build.models, head)
        with self._lock:
            if build.snapshot.name != self._build_name:
                self._build_name, self._by_head = build.snapshot.name, {}
            if name not in self._by_head:
                self._by_head[name] = item_map(build.recommender, name)
            return self._by_head[name]

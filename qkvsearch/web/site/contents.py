"""What of a build goes to a site: words, keys and items as files, and the facts to read them by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

import numpy as np

import qkvsearch
from qkvsearch.answers.columns import own_columns
from qkvsearch.answers.opened import OpenedBuild
from qkvsearch.limits import SITE_ITEMS
from qkvsearch.progress import Progress
from qkvsearch.retrieval.quantized import QuantizedKeys
from qkvsearch.stored import StoredModels
from qkvsearch.texts.analysis import NUMBER, fold
from qkvsearch.texts.encoders import LEARNED
from qkvsearch.texts.language.languages import (
    ELIDED_IN_ENGLISH,
    ELISIONS,
    ENGLISH,
    SHORTEST_IN_ENGLISH,
)
from qkvsearch.texts.language.stop_words import stop_words
from qkvsearch.texts.language.word_patterns import CJK, MARKS
from qkvsearch.texts.token_encoder import TokenEncoder
from qkvsearch.web.site.dictionary import PLACES, bloom_filter
from qkvsearch.web.site.lookups import Lookup, Lookups
from qkvsearch.web.site.shards import (
    SHARD_ITEMS,
    SHARD_KEYS,
    as_json,
    front_coded,
    item_shards,
    key_shards,
    lookup_shards,
    word_numbers,
)

VERSION = 1
MADE_BY = "qkvsearch export site"
# A longer cell is cut, and ends in an ellipsis.
MOST_CELL = 400
# An empty box shows so many items.
N_SHOWN = 20


class SiteContents:
    """files: what each has, by its path in the site, below a folder that is named by all of them.
    facts: site.json. notes: what of the build is not there.
    """

    def __init__(self, build: OpenedBuild, fields: str | Iterable[str], progress: Progress) -> None:
        SITE_ITEMS.check(build.n_items, "`export site`")
        self.models = build.models
        self.notes: list[str] = []
        self.heads = [name for name in self.models.head_weights if name in LEARNED]
        left_out = [name for name in self.models.head_weights if name not in LEARNED][1:]
        if left_out:
            self.notes.append(
                f"The site searches by words and by {' and '.join(self.heads) or 'nothing else'}, "
                f"which the catalog taught; {', '.join(left_out)} needs a model that no page has."
            )
        columns = own_columns(build.tables, fields)
        lookups = Lookups.of(self.models, progress)
        vectors = {head: _term_vectors(self.models, head, lookups.every) for head in self.heads}
        keys = {head: _keys(self.models, head) for head in self.heads}
        firsts, shards = zip(*lookup_shards(lookups.every, vectors), strict=True)
        found = dict(_named("words", [front_coded(lookups.words), word_numbers(lookups)]))
        found |= _named("dictionary", [bloom_filter(lookups.others)])
        found |= _named("postings", shards)
        for head in self.heads:
            found |= _named(head, key_shards(keys[head]))
        rows = self._rows(build, [column.stored for column in columns])
        found |= _named("items", item_shards(rows), "json")
        digest = sha256()
        for name, content in found.items():
            digest.update(f"{name} {len(content)}\n".encode() + content)
        self.folder = f"data-{digest.hexdigest()[:16]}"
        self.files = {f"{self.folder}/{name}": content for name, content in found.items()}
        self.facts: dict[str, Any] = {
            "made_by": MADE_BY,
            "version": VERSION,
            "qkvsearch": qkvsearch.__version__,
            "data": self.folder,
            "n_items": build.n_items,
            "n_words": len(lookups.words),
            "n_lookups": len(lookups.every),
            "fields": [column.name for column in columns],
            "weights": {name: self.models.head_weights[name] for name in ("lexical", *self.heads)},
            "components": {head: int(keys[head].codes.shape[1]) for head in self.heads},
            "postings": list(firsts),
            "shard_items": SHARD_ITEMS,
            "shard_keys": SHARD_KEYS,
            "dictionary_places": PLACES,
            "shown": _shown(self.models),
            **_language(self.models.analyzer.language),
        }

    def _rows(self, build: OpenedBuild, columns: list[str]) -> list[list[Any]]:
        """Each item's id, title and cells, of which long ones are cut."""
        n_cut, rows = 0, []
        for cells in build.tables.cells_of(range(build.n_items), ["id", "title", *columns]):
            shown = [cell if isinstance(cell, int | float) else _text(cell) for cell in cells]
            n_cut += sum(isinstance(cell, str) and cell.endswith("…") for cell in shown)
            rows.append(shown)
        if n_cut:
            self.notes.append(
                f"{n_cut:,} cells are longer than {MOST_CELL} characters and are cut."
            )
        return rows


def _text(cell: Any) -> str | None:
    if cell is None:
        return None
    text = " ".join(str(cell).split())
    return text if len(text) <= MOST_CELL else f"{text[: MOST_CELL - 1]}…"


def _named(
    folder: str, contents: Iterable[bytes], ending: str = "bin"
) -> Iterator[tuple[str, bytes]]:
    """Numbered files of a folder."""
    for number, content in enumerate(contents):
        yield f"{folder}/{number}.{ending}", content


def _keys(models: StoredModels, head: str) -> QuantizedKeys:
    return QuantizedKeys.from_keys(np.asarray(models.dense_keys(head).vectors))


def _term_vectors(models: StoredModels, head: str, lookups: list[Lookup]) -> QuantizedKeys:
    """Of each lookup's term the vector by its weight, as a text of that word alone would be added
    up of; zeros of one that the head has no vector of.
    """
    encoder = models.encoder(head)
    assert isinstance(encoder, TokenEncoder)
    terms = ["" if NUMBER(lookup.term) else lookup.term for lookup in lookups]
    rows = encoder.vocabulary.rows(terms)
    found = encoder.vectors[rows] * encoder.weights[rows][:, None]
    return QuantizedKeys.from_keys(np.where(rows[:, None] >= 0, found, 0).astype(np.float32))


def _shown(models: StoredModels) -> list[int]:
    """Row numbers of what an empty box shows: what most users met, or else the first ones."""
    if models.implicit is None:
        return list(range(min(N_SHOWN, models.n_items)))
    return [int(row) for row in np.argsort(-models.item_counts, kind="stable")[:N_SHOWN]]


def _language(name: str) -> dict[str, Any]:
    """What tells words in a query: `Analyzer` by the same lists."""
    is_english = name == ENGLISH
    return {
        "language": name,
        "cjk": CJK,
        "marks": MARKS,
        "stop_words": sorted(map(fold, stop_words(name))),
        "elisions": sorted(ELISIONS.get(name, ())),
        "elided_before": "".join(sorted(ELIDED_IN_ENGLISH)) if is_english else "",
        "shortest_elided": SHORTEST_IN_ENGLISH if is_english else 0,
        "possessive": "'s" if is_english else "",
    }


def site_json(contents: SiteContents) -> bytes:
    """The facts as a file."""
    return as_json(contents.facts) + b"\n"

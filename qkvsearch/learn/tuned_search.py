"""Keep in a build the settings of searches that `tune search` found, and drop them again.

The settings are a fact of the build. Weights of columns also need keys, which are stored beside
those with the weights that the build chose. Searches rank by the former. Everything else reads the
latter, so similar items, recommendations and the map stay as they are, and `tune --reset` encodes
nothing again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qkvsearch._utils.callbacks import Progress, silent
from qkvsearch.errors import WorkspaceError
from qkvsearch.heads.dense import DenseComponent
from qkvsearch.heads.search_settings import TUNED_SEARCH, SearchSettings
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.learn.merge import merged_contents
from qkvsearch.store import BuildContents, Snapshot, Workspace
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.encoders import dense_heads
from qkvsearch.text.text_encoder import EncodedItems, encode_items

if TYPE_CHECKING:
    import pandas as pd

    from qkvsearch.tables.catalog import Catalog

COMMAND = "tune search"


class MadeKeys(NamedTuple):
    """Keys with the weights of columns that were found, made of the items of one build."""

    # The name of the build.
    build: str
    # Of each dense head, float32 (n_items, d).
    by_head: Mapping[str, np.ndarray]


def stored_items(snapshot: Snapshot) -> Catalog:
    """Return all items of a build as the file had them that it was built from."""
    import pandas as pd

    from qkvsearch.learn.align_rows import column_facts
    from qkvsearch.tables.catalog import Catalog

    catalog = snapshot.catalog
    frame = pd.DataFrame(list(catalog.all_cells()), columns=catalog.columns, dtype=object)
    ids = catalog.ids("items")
    return Catalog(
        ids=ids,
        frame=frame.assign(id=ids.texts),
        text_columns=tuple(snapshot.facts["text_columns"]),
        columns=tuple(column_facts(snapshot).values()),
        originals=_originals(snapshot),
    )


def _originals(snapshot: Snapshot) -> dict[str, pd.Series]:
    """Return what cells were in the owner's file, by column and row."""
    import pandas as pd

    by_column: dict[str, dict[int, str]] = {}
    for position, name, text in snapshot.catalog.all_originals():
        by_column.setdefault(name, {})[position] = text
    return {name: pd.Series(texts, dtype=object) for name, texts in by_column.items()}


def encoded_columns(models: StoredModels, progress: Progress) -> dict[str, EncodedItems]:
    """Return the embeddings of the items' text columns by dense head."""
    texts = stored_items(models.snapshot).fields()
    fields = AnalyzedTexts.of_columns(texts, models.analyzer)
    return {
        head: encode_items(head, models.encoder(head), fields, progress)
        for head in models.dense_heads
    }


def use_in_search(
    workspace: Workspace,
    settings: SearchSettings,
    seed: int,
    made: MadeKeys | None = None,
    progress: Progress | None = None,
) -> None:
    """Publish a build that searches with these settings; everything else stays.

    made: the keys with the weights of columns in `settings`. Those of another build are not used:
    its items may be others, and the texts are encoded again. Where the build has keys with these
    weights already, they stay. Raises `WorkspaceError`, also where the workspace was built
    meanwhile with other heads or columns than the settings are of.
    """
    progress = progress or silent
    with workspace.writing(COMMAND), closing(workspace.open()) as build:
        if not settings.fit(build.facts["head_weights"], build.facts["text_columns"]):
            raise WorkspaceError(
                f"{workspace.path} was built meanwhile with other heads or columns: nothing is "
                "changed; run tune search again"
            )
        contents = merged_contents(build, progress)
        keeps_keys = settings.columns == SearchSettings.of(build.facts).columns
        if not keeps_keys:
            _forget_keys(contents)
        contents.facts.pop(TUNED_SEARCH, None)
        if settings.to_dict():
            contents.facts[TUNED_SEARCH] = {"seed": seed, "settings": settings.to_dict()}
        if settings.columns is not None and not keeps_keys:
            if made is None or made.build != build.name:
                made = _made_keys(build, settings, progress)
            for head, keys in made.by_head.items():
                DenseComponent(head).store_tuned(contents, keys)
        workspace.publish(contents, COMMAND)


def _made_keys(build: Snapshot, settings: SearchSettings, progress: Progress) -> MadeKeys:
    """Encode the texts of a build, and weigh its columns."""
    models = StoredModels(build).with_search(settings)
    weights = models.tuned_column_weights
    encoded = encoded_columns(models, progress)
    return MadeKeys(build.name, {head: items.keys(weights) for head, items in encoded.items()})


def forget_settings(contents: BuildContents) -> None:
    """Drop the settings of searches, and the keys that were made by them."""
    contents.facts.pop(TUNED_SEARCH, None)
    _forget_keys(contents)


def _forget_keys(contents: BuildContents) -> None:
    for head in dense_heads(contents.facts["head_weights"]):
        DenseComponent(head).store_tuned(contents, None)


def taken_over(
    previous: SearchSettings, heads: Sequence[str], columns: Sequence[str]
) -> tuple[SearchSettings, list[str]]:
    """Return the settings that a new build takes over from the previous one, and why not others.

    heads, columns: the heads and the text columns of the new build.

    >>> found = SearchSettings(heads={"lexical": 0.4, "lsa": 0.6}, second_pass=0.5)
    >>> taken_over(found, ["lexical", "lsa"], ["title"])[0] == found
    True
    >>> taken_over(found, ["lexical", "static"], ["title"])[1]
    ['the weights of heads that tune search found, as the heads are others']
    """
    settings, lost = previous, []
    if settings.heads is not None and set(settings.heads) != set(heads):
        settings = replace(settings, heads=None)
        lost.append("the weights of heads that tune search found, as the heads are others")
    if settings.columns is not None and set(settings.columns) != set(columns):
        settings = replace(settings, columns=None)
        lost.append("the weights of columns that tune search found, as the columns are others")
    return settings, lost

"""`explain`: why one hit has its score, with all components, and in plain words."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from qkvsearch.engine import Engine
from qkvsearch.rank.ranking import Ranking
from qkvsearch.scores.components import Components
from qkvsearch.terminal import shorten
from qkvsearch.web.api.ranking_routes import (
    RecommendBody,
    SearchParameters,
    SimilarParameters,
    rank_for_query,
    rank_similar,
)
from qkvsearch.web.api.responses import RankedItem, RequestService, as_json, described_by
from qkvsearch.web.api.strict_route import StrictRoute
from qkvsearch.web.problems import Problem

router = APIRouter(tags=["search"], route_class=StrictRoute)
# How many items of a history an explained recommendation lists.
MAX_BECAUSE = 1000
# Words of the query and of the item in a table; the others are added up. Longer labels are cut.
MAX_QUERY, MAX_KEYS, MAX_LABEL = 12, 18, 60
Rank = Annotated[
    int,
    Field(ge=1, le=100_000, description="The rank of the hit, from 1.", exclude=True, default=1),
]


class ExplainSearch(SearchParameters):
    """The search, and which of its hits."""

    rank: Rank


class ExplainSimilar(SimilarParameters):
    """To which items, and which of the hits."""

    rank: Rank


class ExplainRecommend(RecommendBody):
    """For whom, and which of the hits."""

    rank: Rank


class Explanation(BaseModel):
    """The hit at that rank. It also has `reasons`, in words with the `value` that each adds to the
    score. A recommendation has `because`: what each item of the history adds, and without an id
    what damping or diversity do. Other hits have `map`: `values` are what each pair of words adds,
    by head, word of the `query` and word of the item (`keys`); where `cut` is not 0, the last entry
    is of that many other words. `constant` is what every item gets, by head, and `other` what is of
    no word, such as a taste. All together are the score.
    """

    hit: RankedItem


@router.get(
    "/explain/search", responses=described_by(Explanation), summary="Explain a hit of a search"
)
async def explain_search(
    service: RequestService, parameters: Annotated[ExplainSearch, Query()]
) -> Response:
    """What each pair of words adds to the score. The hits are those of `search`."""
    one = {"k": 1, "offset": parameters.rank - 1, "facets": ""}
    return await service.ask(
        lambda engine: explain_words(rank_for_query(engine, parameters, **one)), True
    )


@router.get(
    "/explain/similar", responses=described_by(Explanation), summary="Explain a similar item"
)
async def explain_similar(
    service: RequestService, parameters: Annotated[ExplainSimilar, Query()]
) -> Response:
    """What each pair of words and what users add to the score. The hits are those of `similar`."""
    one = parameters.model_copy(update={"k": 1, "offset": parameters.rank - 1})
    return await service.ask(lambda engine: explain_words(rank_similar(engine, one)), True)


@router.post(
    "/explain/recommend",
    responses=described_by(Explanation),
    summary="Explain a recommendation",
)
async def explain_recommend(service: RequestService, parameters: ExplainRecommend) -> Response:
    """What each item of the history adds to the score: the largest 1,000, and all others as one.
    The hits are those of `recommend`.
    """
    return await service.ask(lambda engine: explain_history(engine, parameters), True)


def explain_words(ranking: Ranking) -> Response:
    """Explain the one hit word by word. Raises `Problem` where there is none."""
    check_rank(ranking)
    components = ranking.parts(0)
    reasons = [reason._asdict() for reason in ranking.reasons(0, components)]
    hit = {**ranking.to_records()[0], "reasons": reasons, "map": word_table(components)}
    return as_json({"hit": hit})


def explain_history(engine: Engine, parameters: ExplainRecommend) -> Response:
    """Explain the hit by the items of the history. Raises `Problem` where there is none."""
    one = {"k": 1, "offset": parameters.rank - 1, "explain": True, "because": MAX_BECAUSE}
    ranking = engine.recommend(**{**parameters.options(), **one})
    check_rank(ranking)
    return as_json({"hit": ranking.explained_records()[0]})


def check_rank(ranking: Ranking) -> None:
    """Raise `Problem` where there are fewer hits than the rank asked for."""
    if not ranking:
        raise Problem(404, "`rank`: there are fewer hits")


# --- components as a table ---


def word_table(components: Components) -> dict[str, Any]:
    """Return the components of a score as a table: words of the query by words of the item, for
    each head.

    `values`, float64 (heads, query, keys), are lists, with the names along each axis; `constant`
    and `other` are what each head adds without a word of both. All together are the score.

    Words that differ in case alone are one. Words of the query come in their order, words of the
    item by how much they matter. `cut` says how many words the last entry of an axis adds up, 0
    where it is a word like the others.

    >>> from qkvsearch.scores.components import ScoreComponent
    >>> components = [
    ...     ScoreComponent("lexical", "Rain", "rain", 2.0),
    ...     ScoreComponent("lexical", None, None, -0.5),
    ... ]
    >>> table = word_table(Components.of(components))
    >>> table["query"], table["keys"], table["values"], table["constant"]
    (['Rain'], ['rain'], [[[2.0]]], [-0.5])
    """
    heads, query, keys = _Axis(), _Axis(), _Axis()
    # The head and the word of each source, −1 for no word.
    head_of, word_of, is_constant = (np.zeros(len(components.sources), np.int64) for _ in range(3))
    sources = zip(components.sources, components.first_keys, strict=True)
    for row, (source, key) in enumerate(sources):
        has_words = source.query is not None and key is not None and source.head != "collaborative"
        head_of[row] = heads.index(source.head)
        word_of[row] = query.index(source.query) if has_words else -1
        is_constant[row] = source.query is None and key is None
    constant, other = (
        np.bincount(head_of, components.sums * which, len(heads.labels)).tolist()
        for which in (is_constant, (word_of < 0) & ~is_constant.astype(bool))
    )
    in_table = word_of[components.rows] >= 0
    rows, columns, values = (
        array[in_table] for array in (components.rows, components.columns, components.values)
    )
    key_of = np.zeros(len(components.keys), np.int64)
    for column in np.unique(columns).tolist():
        key_of[column] = keys.index(components.keys[column])
    i, j = word_of[rows], key_of[columns]
    sizes = np.bincount(j, np.abs(values), len(keys.labels))
    query_words = query.largest(np.bincount(i, np.abs(values), len(query.labels)), MAX_QUERY)
    item_words = sorted(keys.largest(sizes, MAX_KEYS), key=lambda number: -sizes[number])
    n_cut = len(query.labels) - len(query_words), len(keys.labels) - len(item_words)
    shape = len(heads.labels), len(query_words) + bool(n_cut[0]), len(item_words) + bool(n_cut[1])
    table = np.zeros(shape)
    query_index = _positions(query_words, len(query.labels))[i]
    key_index = _positions(item_words, len(keys.labels))[j]
    np.add.at(table, (head_of[rows], query_index, key_index), values)
    return {
        "heads": heads.labels,
        "query": [query.labels[number] for number in query_words],
        "keys": [keys.labels[number] for number in item_words],
        "cut": {"query": n_cut[0], "keys": n_cut[1]},
        "values": table.tolist(),
        "constant": constant,
        "other": other,
    }


class _Axis:
    """Labels in the order in which they first occur."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self._indices: dict[str, int] = {}

    def index(self, label: Any) -> int:
        text = str(label)
        index = self._indices.setdefault(text.casefold(), len(self.labels))
        if index == len(self.labels):
            self.labels.append(shorten(text, MAX_LABEL))
        return index

    def largest(self, sizes: np.ndarray, n: int) -> list[int]:
        """Return the indices of the n largest labels in order; all where only one would be left."""
        if len(self.labels) <= n + 1:
            return list(range(len(self.labels)))
        return sorted(np.argsort(-sizes, kind="stable")[:n].tolist())


def _positions(displayed: Sequence[int], n: int) -> np.ndarray:
    """Return the position of each of n labels among the displayed ones; of others, the last."""
    positions = np.full(n, len(displayed))
    positions[list(displayed)] = np.arange(len(displayed))
    return positions

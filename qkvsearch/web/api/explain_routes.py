"""`explain`: why one hit has its score, with all components, and in plain words."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple
from unicodedata import category

import numpy as np
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from qkvsearch.engine import Engine
from qkvsearch.heads.taste_head import TASTE
from qkvsearch.rank.questions import SMALLEST
from qkvsearch.rank.ranking import Ranking
from qkvsearch.rank.reasons import reason_records
from qkvsearch.rank.request_limits import MAX_RANK
from qkvsearch.scores.components import Components
from qkvsearch.terminal import shorten
from qkvsearch.web.api.ranking_routes import (
    RecommendBody,
    SimilarParameters,
    rank_for_query,
    rank_similar,
)
from qkvsearch.web.api.responses import (
    RankedItem,
    RequestService,
    as_json,
    check_count,
    described_by,
)
from qkvsearch.web.api.search_parameters import SearchParameters
from qkvsearch.web.api.strict_route import StrictRoute
from qkvsearch.web.problems import Problem
from qkvsearch.web.rights import check_users

router = APIRouter(tags=["search"], route_class=StrictRoute)
# How many items of a history an explained recommendation lists.
MAX_BECAUSE = 1000
# Words of the query and of the item in a table; the others are added up. Longer labels are cut.
MAX_QUERY, MAX_KEYS, MAX_LABEL = 12, 18, 60
Rank = Annotated[
    int,
    Field(ge=1, le=MAX_RANK, description="The rank of the hit, from 1.", exclude=True, default=1),
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
    score, and `others`, how much of it they do not name. With `explain=smallest` it has `smallest`:
    the fewest `items` of the history, or `words` of the query, without which it would not be among
    the first `offset` + `k` hits. A recommendation has `because`: what each item of the history
    adds, and without an id what damping or diversity do. Other hits have `map`: `values` are what
    each pair of words adds, by head, word of the `query` and word of the item (`keys`); where `cut`
    is not 0, the last entry is of that many other words and signs. `constant` is what every item
    gets, by head, and `other` what is of no word, such as a taste. All together are the score.
    """

    hit: RankedItem


@router.get(
    "/explain/search", responses=described_by(Explanation), summary="Explain a hit of a search"
)
async def explain_search(
    service: RequestService, parameters: Annotated[ExplainSearch, Query()]
) -> Response:
    """What each pair of words adds to the score. The hits are those of `search`."""
    check_count(service, parameters.k)
    return await service.ask(lambda engine: explain_query(engine, parameters), True)


@router.get(
    "/explain/similar", responses=described_by(Explanation), summary="Explain a similar item"
)
async def explain_similar(
    service: RequestService, parameters: Annotated[ExplainSimilar, Query()]
) -> Response:
    """What each pair of words and what users add to the score. The hits are those of `similar`."""
    check_count(service, parameters.k)
    one = parameters.model_copy(update={"k": 1, "offset": parameters.rank - 1})
    return await service.ask(
        lambda engine: as_json({"hit": explain_words(rank_similar(engine, one))}), True
    )


@router.post(
    "/explain/recommend",
    responses=described_by(Explanation),
    summary="Explain a recommendation",
)
async def explain_recommend(
    request: Request, service: RequestService, parameters: ExplainRecommend
) -> Response:
    """What each item of the history adds to the score: the largest 1,000, and all others as one.
    The hits are those of `recommend`.
    """
    check_users(request.scope, [parameters.user])
    check_count(service, parameters.k)
    return await service.ask(lambda engine: explain_history(engine, parameters), True)


def explain_query(engine: Engine, parameters: ExplainSearch) -> Response:
    """Explain the hit word by word. Raises `Problem` where there is none."""
    one = {"k": 1, "offset": parameters.rank - 1, "facets": "", "explain": bool(parameters.explain)}
    hit = explain_words(rank_for_query(engine, parameters, **one))
    if parameters.explain == SMALLEST:
        whole = rank_for_query(engine, parameters, facets="", **first_hits(parameters))
        hit["smallest"] = whole.smallest(parameters.rank - 1)
    return as_json({"hit": hit})


def explain_words(ranking: Ranking) -> dict[str, Any]:
    """Return the one hit, explained word by word. Raises `Problem` where there is none."""
    check_rank(ranking)
    components = ranking.parts(0)
    explained = reason_records(ranking.reasons(0, components))
    return {**ranking.to_records()[0], **explained, "map": word_table(components)}


def explain_history(engine: Engine, parameters: ExplainRecommend) -> Response:
    """Explain the hit by the items of the history. Raises `Problem` where there is none."""
    one = {"k": 1, "offset": parameters.rank - 1, "explain": True, "because": MAX_BECAUSE}
    ranking = engine.recommend(**{**parameters.options(), **one})
    check_rank(ranking)
    hit = ranking.explained_records()[0]
    if parameters.explain == SMALLEST:
        whole = engine.recommend(**{**parameters.options(), **first_hits(parameters)})
        hit["smallest"] = whole.smallest(parameters.rank - 1)
    return as_json({"hit": hit})


def first_hits(parameters: ExplainSearch | ExplainRecommend) -> dict[str, Any]:
    """Return the options of the hits that are asked for, from the first to the last, the one to
    explain included: it may be gone from these.
    """
    k = max(parameters.offset + parameters.k, parameters.rank)
    return {"k": k, "offset": 0, "explain": False}


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
    item by how much they matter. `cut` says how many words and signs such as a full stop the last
    entry of an axis adds up, 0 where it is a word like the others.

    >>> from qkvsearch.scores.components import ScoreComponent
    >>> components = [
    ...     ScoreComponent("lexical", "Rain", "rain", 2.0),
    ...     ScoreComponent("lexical", None, None, -0.5),
    ... ]
    >>> table = word_table(Components.of(components))
    >>> table["query"], table["keys"], table["values"], table["constant"]
    (['Rain'], ['rain'], [[[2.0]]], [-0.5])
    """
    read = _SourceWords.of(components)
    heads, query, keys = read.heads, read.query, _Axis()
    head_of, word_of = read.head_of, read.word_of
    has_word, is_constant = word_of >= 0, read.is_constant
    n_heads = len(heads.labels)
    constant = np.bincount(head_of, components.sums * is_constant, n_heads)
    other = np.bincount(head_of, components.sums * (~has_word & ~is_constant), n_heads)

    # The pairs of a word of the query and a word of the item.
    is_pair = has_word[components.rows]
    rows, columns = components.rows[is_pair], components.columns[is_pair]
    values = components.values[is_pair]
    key_of = np.zeros(len(components.keys), np.int64)
    for column in np.unique(columns).tolist():
        key_of[column] = keys.index(components.keys[column])
    of_query, of_item = word_of[rows], key_of[columns]

    # The words that are displayed; all others are added up.
    query_sizes = np.bincount(of_query, np.abs(values), len(query.labels))
    item_sizes = np.bincount(of_item, np.abs(values), len(keys.labels))
    query_words = query.largest(query_sizes, MAX_QUERY)
    item_words = keys.largest(item_sizes, MAX_KEYS)
    item_words.sort(key=lambda number: -item_sizes[number])
    n_query_cut = len(query.labels) - len(query_words)
    n_item_cut = len(keys.labels) - len(item_words)

    n_rows = len(query_words) + (1 if n_query_cut else 0)
    n_columns = len(item_words) + (1 if n_item_cut else 0)
    table = np.zeros((n_heads, n_rows, n_columns))
    query_index = _positions(query_words, len(query.labels))[of_query]
    item_index = _positions(item_words, len(keys.labels))[of_item]
    np.add.at(table, (head_of[rows], query_index, item_index), values)
    return {
        "heads": heads.labels,
        "query": [query.labels[number] for number in query_words],
        "keys": [keys.labels[number] for number in item_words],
        "cut": {"query": n_query_cut, "keys": n_item_cut},
        "values": table.tolist(),
        "constant": constant.tolist(),
        "other": other.tolist(),
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
        """Return the indices of the n largest words in order, without punctuation; all where they
        are the only labels, and only one would be left.
        """
        order = np.argsort(-sizes, kind="stable").tolist()
        words = [index for index in order if not is_punctuation(self.labels[index])]
        is_whole = len(words) == len(self.labels) and len(words) <= n + 1
        return sorted(words if is_whole else words[:n])


def is_punctuation(label: str) -> bool:
    """Return whether a label is of signs alone, such as a full stop or a currency's.

    >>> [is_punctuation(label) for label in (".", "€", "[SEP]", "°C", "🍞")]
    [True, True, False, False, False]
    """
    categories = map(category, label)
    return all(one.startswith("P") or one in ("Sc", "Sk", "Sm") for one in categories)


def _positions(displayed: Sequence[int], n: int) -> np.ndarray:
    """Return the position of each of n labels among the displayed ones; of others, the last."""
    positions = np.full(n, len(displayed))
    positions[list(displayed)] = np.arange(len(displayed))
    return positions


class _SourceWords(NamedTuple):
    """The heads and the words of the query that the sources of components name."""

    heads: _Axis
    query: _Axis
    # The head of each source, int64 (n_sources,).
    head_of: np.ndarray
    # Its word of the query, −1 for none, int64 (n_sources,).
    word_of: np.ndarray
    # Whether it is the constant of its head, bool (n_sources,).
    is_constant: np.ndarray

    @classmethod
    def of(cls, components: Components) -> "_SourceWords":
        heads, query = _Axis(), _Axis()
        n_sources = len(components.sources)
        head_of = np.zeros(n_sources, np.int64)
        word_of = np.full(n_sources, -1, np.int64)
        is_constant = np.zeros(n_sources, dtype=bool)
        sources = zip(components.sources, components.first_keys, strict=True)
        for row, (source, key) in enumerate(sources):
            head_of[row] = heads.index(source.head)
            is_constant[row] = source.query is None and key is None
            is_taste = source.head == TASTE.name
            if source.query is not None and key is not None and not is_taste:
                word_of[row] = query.index(source.query)
        return cls(heads, query, head_of, word_of, is_constant)

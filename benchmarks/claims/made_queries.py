"""Whether queries that a catalog makes of itself order searches as people's judgements do.

Thirteen settings of the static encoder's build: by default, each head alone, each head left out,
without the second pass, with equal weights of columns, and with BM25's k1 or b at 0, where further
occurrences or the length of a text do not count. People's order is that by judged queries: MRR@10
on TED's dev queries, of short texts, and nDCG@10 on Cranfield, of long ones. There each query's own
document is left out of its ranking: the query was made from it. The other order is that by made
queries, MRR@10 of five seeds. Kendall's τ is 1 where both orders are the same; pairs that people
find exactly equal are left out. Shown are the median and the lowest of five seeds, over the kinds
that a report's means have, and by kind. Which kinds these are was chosen on TED's dev queries and
on Cranfield. TED's test queries were asked twice: the other time with two more kinds of titles in
the means, which are left out again. Most of Cranfield's settings differ by less than chance by
people.

QKVSEARCH_DATA=data python benchmarks --only made_queries    (fifteen minutes)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import qkvsearch as qkv
from benchmarks.support.orders import kendall_tau
from benchmarks.support.public_data import JudgedTexts, cranfield, own_documents, ted
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch._utils.callbacks import silent
from qkvsearch.evaluation.made_queries.kinds import KINDS, kinds_that_count, make_queries
from qkvsearch.evaluation.made_queries.query_kind import MadeQuery
from qkvsearch.evaluation.made_queries.report import rank_of_answer
from qkvsearch.evaluation.made_queries.source import QueriedCatalog
from qkvsearch.evaluation.metrics import ndcg, reciprocal_rank
from qkvsearch.heads import bm25
from qkvsearch.heads.dense_keys import DenseKeys
from qkvsearch.heads.search_settings import SearchSettings
from qkvsearch.heads.words import LexicalComponent
from qkvsearch.learn.tuned_search import encoded_columns
from qkvsearch.rank.loaded_build import LoadedBuild
from qkvsearch.rank.questions import SearchQuestion
from qkvsearch.rank.search import search
from qkvsearch.rank.text_search import TextSearch
from qkvsearch.store import Workspace

K, SEEDS = 10, (1, 2, 3, 4, 5)
# Fewer queries of the kinds that do not count are enough to show why.
N_OTHERS = 50
# From a ranking, its grades and k to a figure.
Metric = Callable[[list[str], Mapping[str, int], int], float]
# The metric of each setting, by its name.
Figures = Mapping[str, float]


class Setting(NamedTuple):
    """A way to search."""

    build: LoadedBuild
    heads: Sequence[str] | None = None


def talks() -> Iterator[Row]:
    """TED: by dev queries, by which the kinds were chosen, and by test queries."""
    with built(ted("dev")) as build:
        people = {
            f"{part} queries": by_people(build, ted(part), reciprocal_rank, {})
            for part in ("dev", "test")
        }
        yield from compared("TED talks", build, people, "MRR@10")


def abstracts() -> Iterator[Row]:
    """Cranfield."""
    data = cranfield()
    with built(data) as build:
        people = {"judgements": by_people(build, data, ndcg, own_documents())}
        yield from compared("Cranfield", build, people, "nDCG@10")


@contextmanager
def built(data: JudgedTexts) -> Iterator[LoadedBuild]:
    columns = qkv.Columns(id="id", title="title", text=data.text)
    with TemporaryDirectory() as folder:
        path = Path(folder, "ws")
        qkv.build(path, items=data.items, columns=columns, encoder="static").close()
        yield LoadedBuild.open(Workspace(path))


# --- the settings ---


def settings(build: LoadedBuild) -> dict[str, Setting]:
    """All settings by name."""
    weights = build.models.head_weights
    found = {"default": Setting(build)}
    found |= {f"{head} alone": Setting(build, [head]) for head in weights}
    found |= {f"without {head}": Setting(without(build, head)) for head in weights}
    no_second_pass = build.with_search(SearchSettings(second_pass=0.0))
    return found | {
        "without the second pass": Setting(no_second_pass),
        "equal columns": Setting(with_equal_columns(build)),
        "k1 = 0": Setting(with_bm25(build, k1=0.0)),
        "b = 0": Setting(with_bm25(build, b=0.0)),
    }


def without(build: LoadedBuild, head: str) -> LoadedBuild:
    rest = {**build.models.head_weights, head: 0.0}
    total = sum(rest.values())
    weights = {name: weight / total for name, weight in rest.items()}
    return build.with_search(SearchSettings(heads=weights))


def with_equal_columns(build: LoadedBuild) -> LoadedBuild:
    names = build.snapshot.facts["text_columns"]
    shares = dict.fromkeys(names, 1 / len(names))
    encoded = encoded_columns(build.models, silent)
    keys = {head: DenseKeys(items.keys([*shares.values()])) for head, items in encoded.items()}
    return build.with_search(SearchSettings(columns=shares), keys)


def with_bm25(build: LoadedBuild, k1: float = bm25.K1, b: float = bm25.B) -> LoadedBuild:
    """The build with other parameters of BM25, which a build does not offer."""
    component = LexicalComponent()
    arrays = component.read(build.snapshot, *component.count_arrays, "lengths")
    defaults = bm25.K1, bm25.B
    bm25.K1, bm25.B = k1, b
    try:
        norms = bm25.length_norms(arrays["lengths"])
        keys = bm25.LexicalKeys.weighed(component.counts_of(arrays), norms)
    finally:
        bm25.K1, bm25.B = defaults
    models = copy(build.models)
    models.lexical_keys = replace(keys, rarity=build.models.lexical_keys.rarity)
    return replace(build, models=models, texts=TextSearch(models, build.catalog))


# --- the two orders ---


def by_people(
    build: LoadedBuild, data: JudgedTexts, metric: Metric, own: Mapping[str, str]
) -> Figures:
    """The metric at 10 of each setting by judged queries. own: a query's own document."""
    judged = [query for query in data.queries if query in data.judgements]
    figures = {}
    for name, setting in settings(build).items():
        values = []
        for query in judged:
            question = SearchQuestion(query=data.queries[query], k=K + 1, heads=setting.heads)
            found = search(setting.build.for_question(), question)
            ids, _ = build.catalog.names(found.positions)
            ranked = [str(id_) for id_ in ids if str(id_) != own.get(query)]
            values.append(metric(ranked, data.judgements[query], K))
        figures[name] = fmean(values)
    return figures


def by_made_queries(build: LoadedBuild, seed: int) -> tuple[dict[str, Figures], list[str]]:
    """The MRR@10 of each setting by kind of query, and the kinds that count."""
    made = make_queries(build, seed)
    counted = kinds_that_count(made, QueriedCatalog(build))
    queries: dict[str, list[MadeQuery]] = {}
    for query in made:
        queries.setdefault(query.kind, []).append(query)
    ways = settings(build)
    figures: dict[str, Figures] = {}
    for kind, own in queries.items():
        asked = own if kind in counted else own[:N_OTHERS]
        figures[kind] = {name: mrr(setting, asked) for name, setting in ways.items()}
    return figures, counted


def mrr(setting: Setting, queries: Sequence[MadeQuery]) -> float:
    ranks = [rank_of_answer(setting.build, query, setting.heads) for query in queries]
    return fmean(0.0 if rank is None else 1 / rank for rank in ranks)


# --- the tables ---


def compared(
    title: str, build: LoadedBuild, people: Mapping[str, Figures], metric: str
) -> Iterator[Row]:
    seeds = [by_made_queries(build, seed) for seed in SEEDS]
    counted = seeds[0][1]
    of_seeds = [
        {name: fmean(figures[kind][name] for kind in counted) for name in figures[counted[0]]}
        for figures, _ in seeds
    ]
    task = f"{title}, a setting"
    for name in of_seeds[0]:
        for which, figures in people.items():
            yield Row(task, name, f"{metric} by {which}", figures[name])
        made = median(figures[name] for figures in of_seeds)
        yield Row(task, name, "MRR@10 by made queries, median of five", made)
    kinds = [kind.name for kind in KINDS if kind.name in seeds[0][0]]
    for which, figures in people.items():
        task = f"{title}, Kendall's τ with {which}"
        yield from agreement(task, f"all that count ({', '.join(counted)})", figures, of_seeds)
        for kind in kinds:
            by_kind = [of_seed[kind] for of_seed, _ in seeds]
            yield from agreement(task, kind, figures, by_kind)


def agreement(task: str, name: str, people: Figures, seeds: Sequence[Figures]) -> Iterator[Row]:
    names = list(people)
    by_people = [people[name] for name in names]
    taus = [kendall_tau(by_people, [made[name] for name in names]) for made in seeds]
    yield Row(task, name, "τ, median of five seeds", median(taus))
    yield Row(task, name, "lowest", min(taus))


PARTS = {"ted": talks, "cranfield": abstracts}

if __name__ == "__main__":
    main(__file__, PARTS)

"""`tune search`: what made queries tell about each part of a search, and what is tuned by them.

`agreement`: every single step from the default settings is judged by people and by each kind of
made queries that compares heads; the others set nothing. A kind may tell about a part only where
people like the step that it likes best. What `tuning_queries.py` lets them tell was chosen by TED's
dev queries and those of Cranfield with even numbers. The other parts: catalogs before and after
`tune search`, by people's judgements.

QKVSEARCH_DATA=data python benchmarks --only tuned_search    (half an hour)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import qkvsearch as qkv
from benchmarks.support.orders import kendall_tau
from benchmarks.support.public_data import JudgedTexts, cranfield, cranfield_with_sources, ted
from benchmarks.support.results import Row
from benchmarks.support.script import main
from qkvsearch._utils.callbacks import silent
from qkvsearch.evaluation.made_queries.kinds import KINDS, make_queries
from qkvsearch.evaluation.made_queries.source import QueriedCatalog
from qkvsearch.evaluation.search_parts import PARTS as PARTS_OF_SEARCH
from qkvsearch.evaluation.search_parts import Parts
from qkvsearch.evaluation.search_tuning import Asking, mean_and_error
from qkvsearch.evaluation.tuning_queries import JUDGED, TuningQuery, asked, judged_queries
from qkvsearch.heads.search_settings import SearchSettings
from qkvsearch.rank.loaded_build import LoadedBuild

# The queries of these seeds count together.
SEEDS = (1, 2)
N_QUERIES, DRAWN = 400, 41
# What a catalog is tuned by.
SEEDS_OF_TUNING, MINUTES = (0, 1), 4.0


@contextmanager
def built(data: JudgedTexts, encoder: str = "static") -> Iterator[qkv.Engine]:
    columns = qkv.Columns(id="id", title="title", text=data.text)
    with TemporaryDirectory() as folder:
        path = Path(folder, "build")
        with qkv.build(path, items=data.items, columns=columns, encoder=encoder) as engine:
            yield engine


# --- agreement ---


def some_of(data: JudgedTexts) -> JudgedTexts:
    names = [name for name in data.queries if name in data.judgements]
    drawn = np.random.default_rng(DRAWN).permutation(len(names))[:N_QUERIES]
    queries = {names[row]: data.queries[names[row]] for row in sorted(drawn.tolist())}
    return asked_for(data, queries)


def even(data: JudgedTexts) -> JudgedTexts:
    queries = {name: text for name, text in data.queries.items() if int(name) % 2 == 0}
    return asked_for(data, queries)


def asked_for(data: JudgedTexts, queries: dict[str, str]) -> JudgedTexts:
    judgements = {name: data.judgements[name] for name in queries if name in data.judgements}
    return replace(data, queries=queries, judgements=judgements)


@dataclass
class Steps:
    """The gain of every query by every single step from the default settings."""

    names: list[str]
    # By step (n_queries,).
    gains: list[np.ndarray]

    def of(self, rows: np.ndarray) -> np.ndarray:
        return np.array([gain[rows].mean() for gain in self.gains])

    def best(self, rows: np.ndarray) -> int | None:
        """The step that a search takes by these queries; None for none."""
        steps = [mean_and_error(gain[rows], np.ones(len(rows))) for gain in self.gains]
        better = [(gain, number) for number, (gain, error) in enumerate(steps) if gain > error]
        return max(better)[1] if better else None


def single_steps(
    build: LoadedBuild, asking: Asking, part: str, queries: list[TuningQuery]
) -> Steps:
    default = SearchSettings()
    before = asking.figures(default, queries)
    steps = Steps([], [])
    for settings in Parts.of(build.models).tried(part, default):
        steps.names.append(str(settings.to_dict()[part]))
        steps.gains.append(asking.figures(settings, queries) - before)
    return steps


def tau(first: np.ndarray, second: np.ndarray) -> float:
    """Kendall's τ of the steps and of no step."""
    return kendall_tau([*first, 0.0], [*second, 0.0], ties=True)


def agreement(name: str, data: JudgedTexts) -> Iterator[Row]:
    with built(data) as engine:
        build = engine.current_build
        queries = judged_queries(build, data.queries, data.judgements)
        source = QueriedCatalog(build)
        comparing = {kind.name for kind in KINDS if kind.carries_heads(source)}
        for seed in SEEDS:
            queries += map(asked, make_queries(build, seed, only=comparing))
        kinds = np.array([query.kind for query in queries])
        asking = Asking(build, "mrr@10", inf, silent)
        asking.encode_columns(inf)
        people = np.flatnonzero(kinds == JUDGED)
        for part in PARTS_OF_SEARCH:
            steps = single_steps(build, asking, part, queries)
            if steps.names:
                yield from _agreement_rows(f"{name}: {part}", steps, kinds, people)


def _agreement_rows(
    task: str, steps: Steps, kinds: np.ndarray, people: np.ndarray
) -> Iterator[Row]:
    by_people = steps.of(people)
    for step, gain, gains in zip(steps.names, by_people, steps.gains, strict=True):
        error = mean_and_error(gains[people], np.ones(len(people)))[1]
        print(f"{task}: {step}: by people {gain:+.4f} ± {1.96 * error:.4f}", flush=True)
        yield Row(task, f"people, {step}", "MRR@10 gained", float(gain))
    for kind in sorted({*kinds.tolist()} - {JUDGED}):
        rows = np.flatnonzero(kinds == kind)
        best = steps.best(rows)
        gain = 0.0 if best is None else float(by_people[best])
        liked = "none" if best is None else steps.names[best]
        agreed = tau(by_people, steps.of(rows))
        print(f"{task}: {kind}: τ {agreed:+.2f}, likes {liked}: by people {gain:+.4f}", flush=True)
        yield Row(task, f"the best step by {kind}", "MRR@10 gained", gain)
        yield Row(task, kind, "Kendall's τ of steps", agreed)


# --- worthwhile ---


def people_of(engine: qkv.Engine, data: JudgedTexts) -> float:
    return engine.evaluate_search(data.queries, data.judgements).metrics["ndcg@10"]


def tuned(
    name: str,
    data: JudgedTexts,
    by: JudgedTexts | None = None,
    seed: int = 0,
    minutes: float = MINUTES,
) -> Iterator[Row]:
    """A catalog before and after `tune search`, by the judgements of `data`. by: other judged
    queries to tune by, beside those that the catalog makes.
    """
    judged = {} if by is None else {"queries": by.queries, "qrels": by.judgements}
    with built(data) as engine:
        before, name_before = people_of(engine, data), engine.snapshot.name
        result = engine.tune_search(minutes=minutes, random_state=seed, **judged)
        after = people_of(engine, data)
        is_other = engine.snapshot.name != name_before
        engine.reset_tuning()
        reset = people_of(engine, data)
    low, high = result.interval
    print(
        f"{name}, seed {seed}: by people {before:.4f}, tuned {after:.4f}, reset {reset:.4f}; held "
        f"out {result.difference:+.4f} ({low:+.4f} to {high:+.4f}), worthwhile {result.worthwhile},"
        f" {is_other}; {result.settings}; {result.notes}",
        flush=True,
    )
    task = f"{name}, seed {seed}"
    yield Row(task, "default settings", "nDCG@10 by people", before)
    yield Row(task, "after tune search", "nDCG@10 by people", after)
    yield Row(task, "after tune --reset", "nDCG@10 by people", reset)
    yield Row(task, "held-out difference", result.metric, result.difference)
    yield Row(task, "its lower bound", result.metric, low)
    yield Row(task, "worthwhile", "1 for yes", float(result.worthwhile))


def with_events(data: JudgedTexts) -> JudgedTexts:
    """Talks of which the event and the length are searched, too, which nobody asks for."""
    return replace(data, text=("title", "tags", "event", "seconds"))


NOTICES = (
    "Please read the terms of use before you order.",
    "All prices include taxes, and delivery is free within the country.",
    "Items can be returned within thirty days if they are unused and in their box.",
    "Write to our customer service if you have questions about your order.",
    "We ship on working days only, usually within two days after payment.",
    "Pictures may differ from the product in colour and size.",
    "Subscribe to our newsletter for offers, news and a discount on your next order.",
    "The guarantee lasts two years from the day of delivery.",
    "We accept credit cards, bank transfers and gift vouchers.",
    "Large items are delivered by a carrier, who will call you first.",
    "Your data is used for this order only and never given to others.",
    "Made by hand from sustainable sources, in small numbers.",
)


def with_notices(data: JudgedTexts) -> JudgedTexts:
    """Abstracts with a searched column of notices, as shops have them: six of twelve sentences
    each, made up here. They tell nothing of the abstract, and are as long as one.
    """
    rng = np.random.default_rng(DRAWN)
    notices = [" ".join(rng.permutation(NOTICES)[:6]) for _ in range(len(data.items))]
    return replace(data, items=data.items.assign(notice=notices), text=(*data.text, "notice"))


def notices() -> Iterator[Row]:
    for seed in SEEDS_OF_TUNING:
        yield from tuned("Cranfield with notices", with_notices(cranfield()), seed=seed)


def by_made_queries() -> Iterator[Row]:
    for seed in SEEDS_OF_TUNING:
        yield from tuned("Cranfield", cranfield(), seed=seed)
        yield from tuned(
            "Cranfield, authors and sources searched", cranfield_with_sources(), seed=seed
        )
        yield from tuned("TED", some_of(ted("test")), seed=seed)


def by_judged_queries() -> Iterator[Row]:
    """By dev queries, and judged by test queries."""
    test, dev = with_events(some_of(ted("test"))), some_of(ted("dev"))
    yield from tuned(
        "TED, events and lengths searched, by judged dev queries", test, dev, minutes=2
    )


PARTS = {
    "agreement_ted": lambda: agreement("TED, dev", some_of(ted("dev"))),
    "agreement_cranfield": lambda: agreement("Cranfield, half", even(cranfield())),
    "made": by_made_queries,
    "judged": by_judged_queries,
    "notices": notices,
}

if __name__ == "__main__":
    main(__file__, PARTS)

"""How much each head should count, learned from queries whose right answers are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from qkvsearch.data.ids import Ids
from qkvsearch.data.judgements import Judgements, Queries, check_queries
from qkvsearch.errors import DataError
from qkvsearch.learning.conditional_logit import Alternatives, conditional_logit, standardised
from qkvsearch.retrieval.keys import LexicalKeys
from qkvsearch.texts.analysis import Analyzer
from qkvsearch.texts.encoders import TextEncoder

# More say little more; a sample of them is asked.
MOST_QUERIES = 1000
# Items that a query chooses among: of a larger catalog half are the best, the rest a sample.
CANDIDATES = 1000
# The given weights count like this many queries: with 100 judged ones it is halfway.
PRIOR_QUERIES = 100
# Scores held at a time, of all heads and items and some queries: 256 MiB.
MOST_SCORES = 1 << 26

SHOWN_NAMES = 3

# Texts to scores (queries, items).
Scorer = Callable[[Sequence[str]], np.ndarray]


class JudgedQueries(NamedTuple):
    """Queries with answers in a catalog: their texts, of each the row numbers of the items that
    answer it, the best first; and the judged items that are not in the catalog.
    """

    texts: list[str]
    answers: list[np.ndarray]
    unknown: list[str]

    def summary(self) -> str:
        """What the weights were learned from, and what was of no use.

        >>> JudgedQueries(["deep sea"], [np.array([3])], ["v9"]).summary()
        '1 judged query; 1 judged item is not in the catalogue: v9'
        """
        n, gone = len(self.texts), len(self.unknown)
        found = f"{n:,} judged {'query' if n == 1 else 'queries'}"
        if not gone:
            return found
        shown = ", ".join(self.unknown[:SHOWN_NAMES]) + (", …" if gone > SHOWN_NAMES else "")
        items = "item is" if gone == 1 else "items are"
        return f"{found}; {gone:,} judged {items} not in the catalogue: {shown}"


def judged_queries(queries: Queries, judgements: Judgements, ids: Ids) -> JudgedQueries:
    """The queries that some item of the catalog answers, with a grade from 1 up.

    Raises `DataError` where a judgement names a query that is not there, or none is left.
    """
    check_queries(judgements, queries)
    rows = {text: row for row, text in enumerate(ids.texts)}
    texts, answers = [], []
    for query, grades in judgements.items():
        best_first = sorted(grades, key=lambda item: -grades[item])
        found = [rows[item] for item in best_first if grades[item] > 0 and item in rows]
        if found:
            texts.append(queries[query])
            answers.append(np.array(found, dtype=np.int64))
    unknown = sorted({item for grades in judgements.values() for item in grades} - rows.keys())
    if not texts:
        raise DataError(
            "no judgement names a relevant item of the catalogue: nothing to learn weights from"
            + (f" (unknown: {', '.join(unknown[:SHOWN_NAMES])})" if unknown else "")
        )
    return JudgedQueries(texts, answers, unknown)


def learn_from_judgements(
    judged: JudgedQueries,
    lexical: LexicalKeys,
    encoders: Mapping[str, TextEncoder],
    keys: Mapping[str, np.ndarray],
    prior: Mapping[str, float],
    seed: int = 0,
) -> dict[str, float]:
    """The weights under which the answers are most likely, with the given ones counting like 100
    queries: n / (100 + n) learned and 100 / (100 + n) given.

    encoders: the dense heads'. keys: what each has of the items, (n_items, d). prior: a weight for
    every head, "lexical" included, which add up to 1.
    """
    scorers: dict[str, Scorer] = {"lexical": lambda texts: lexical_scores(lexical, texts)}
    for name, encoder in encoders.items():
        scorers[name] = _dense_scorer(encoder, keys[name])
    weights = np.array(list(prior.values()))
    rng = np.random.default_rng(seed)
    chosen = np.arange(len(judged.texts))
    if len(chosen) > MOST_QUERIES:
        chosen = np.sort(rng.choice(chosen, MOST_QUERIES, replace=False))
    scored = _scored(judged.texts, chosen, [scorers[name] for name in prior], lexical.n_items)
    sets = [_alternatives(scores, judged.answers[i], weights, rng) for i, scores in scored]
    learned = conditional_logit([_joined(sets)])
    share = len(chosen) / (len(chosen) + PRIOR_QUERIES)
    mixed = share * learned + (1 - share) * weights
    return {name: float(weight) for name, weight in zip(prior, mixed, strict=True)}


def _scored(
    texts: Sequence[str], chosen: np.ndarray, scorers: Sequence[Scorer], n_items: int
) -> Iterator[tuple[int, np.ndarray]]:
    """Each chosen query's standardised scores (heads, n_items), computed some queries at a time."""
    step = max(1, MOST_SCORES // (len(scorers) * n_items))
    for start in range(0, len(chosen), step):
        block = chosen[start : start + step]
        asked = [texts[i] for i in block]
        scores = np.stack([standardised(score(asked)) for score in scorers])
        yield from zip(block.tolist(), scores.swapaxes(0, 1), strict=True)


def _alternatives(
    scores: np.ndarray, answers: np.ndarray, weights: np.ndarray, rng: np.random.Generator
) -> Alternatives:
    """One query's choice, among the whole catalog or among 1,000: up to 250 answers, the best by
    the given weights, and a sample of the rest, each of which stands for several.
    """
    n_items = scores.shape[1]
    answers = answers[: CANDIDATES // 4]
    if n_items <= CANDIDATES:
        found, offsets = np.arange(n_items), np.zeros(n_items, np.float32)
    else:
        fused = weights.astype(np.float32) @ scores
        fused[answers] = np.inf
        taken = np.argpartition(-fused, CANDIDATES // 2)[: CANDIDATES // 2]
        others = np.setdiff1d(np.arange(n_items), taken, assume_unique=True)
        sample = rng.choice(others, CANDIDATES - len(taken), replace=False, shuffle=False)
        found = np.concatenate([taken, sample])
        offsets = np.zeros(len(found), np.float32)
        offsets[len(taken) :] = np.log(len(others) / len(sample))
    shares = np.isin(found, answers).astype(np.float32) / len(answers)
    return Alternatives(scores[:, None, found], shares[None], offsets[None])


def _joined(sets: Sequence[Alternatives]) -> Alternatives:
    """Single queries' choices as one."""
    scores, answers, offsets = zip(*sets, strict=True)
    return Alternatives(
        np.concatenate(scores, axis=1), np.concatenate(answers), np.concatenate(offsets)
    )


def lexical_scores(keys: LexicalKeys, texts: Sequence[str]) -> np.ndarray:
    """BM25 (queries, n_items), zeros for a query of unknown words."""
    scores = np.zeros((len(texts), keys.n_items), dtype=np.float32)
    analyzer = Analyzer()
    for row, text in zip(scores, texts, strict=True):
        if (head := keys.head(analyzer.query_tokens(text))) is not None:
            row[:] = head.scores
    return scores


def _dense_scorer(encoder: TextEncoder, keys: np.ndarray) -> Scorer:
    return lambda texts: encoder.encode_many(texts) @ keys.T

"""What a build learns of queries that it cannot answer: texts of which that is known, measured.

Sentences in other languages and about other things, and words whose letters are shuffled, beside
queries that are answered: judged ones, or passages of a held-out column.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from qkvsearch.retrieval.answerability import LATIN, OTHER, WORDS, Answerability, Evidence
from qkvsearch.retrieval.head_weights import AnsweredQueries, lexical_scores
from qkvsearch.retrieval.keys import LexicalKeys, TermKeys
from qkvsearch.text.analysis import IS_CJK, Analyzer
from qkvsearch.text.languages import stop_words
from qkvsearch.text.text_encoder import TextEncoder

# A language of whose words a catalog has a larger share may be the catalog's own.
MOST_KNOWN = 0.2
# The share of sentences about other things, the nearest ones, that the catalog may be about.
MAY_BE_MEANT = 0.5
N_SHUFFLED, N_TITLES = 50, 200
# Deviations that are smaller say that few texts were met, not that these are all alike.
SMALLEST = {WORDS: 0.04, "lexical": 0.3}
SMALLEST_COSINE = 0.04
# The share of texts that cannot be answered which stay below the level.
NOISE_QUANTILE = 0.95
# Scores held at a time, of all items and some texts: 64 MiB.
MOST_SCORES = 1 << 24

# Texts to each head's best scores, float (n_texts,).
BestScores = Callable[[Sequence[str]], Mapping[str, np.ndarray]]


def best_scores(
    lexical: LexicalKeys,
    encoders: Mapping[str, TextEncoder],
    keys: Mapping[str, np.ndarray],
    analyzer: Analyzer,
) -> BestScores:
    """The best scores of the heads of a build. encoders: the dense heads'. keys: what each has of
    the items, (n_items, d).
    """
    step = max(1, MOST_SCORES // lexical.n_items)

    def highest(score: Callable[[Sequence[str]], np.ndarray], texts: Sequence[str]) -> np.ndarray:
        blocks = (texts[start : start + step] for start in range(0, len(texts), step))
        return np.concatenate([score(block).max(axis=1, initial=0) for block in blocks])

    def cosines(name: str, block: Sequence[str]) -> np.ndarray:
        return encoders[name].encode_many(block) @ keys[name].T

    def by_words(block: Sequence[str]) -> np.ndarray:
        return lexical_scores(lexical, block, analyzer)

    def best(texts: Sequence[str]) -> dict[str, np.ndarray]:
        dense = {name: highest(partial(cosines, name), texts) for name in encoders}
        return {"lexical": highest(by_words, texts), **dense}

    return best


def calibrate(
    keys: TermKeys,
    best: BestScores,
    weights: Mapping[str, float],
    titles: Sequence[str],
    made: Sequence[AnsweredQueries] = (),
    judged: Sequence[str] = (),
    seed: int = 0,
    analyzer: Analyzer | None = None,
) -> Answerability:
    """Measure texts that the catalog cannot answer, and fit the curve to those that it can: judged
    queries, or else made ones, or else its own titles with every other word shuffled, for a query
    rarely has all the words of an item.

    best: what the heads of `weights` have of texts, "lexical" included.
    """

    reader = analyzer or Analyzer()

    def measured(texts: Sequence[str]) -> list[Evidence]:
        return _measured(keys, texts, best(texts), reader) if texts else []

    rng = np.random.default_rng(seed)
    sample = [titles[i] for i in rng.permutation(len(titles))[:N_TITLES]]
    mixed = [shuffled(text, rng) for text in sample[:N_SHUFFLED]]
    noise = [*measured(foreign(keys, reader)), *measured(mixed)]
    noise += _farthest(measured(unrelated_texts()["English"]), weights)
    raw = _without_curve(noise)
    if judged:
        answered, source = measured(judged), f"{len(judged):,} judged queries"
    elif made:
        answered = [one for of in made for one in _measured(of.keys, of.texts, of.best, reader)]
        source = f"{len(answered):,} made queries"
    else:
        halves = [half_shuffled(text, rng) for text in sample]
        answered, source = measured(halves), f"{len(halves):,} titles"
    negative = np.array([raw.strength(one, weights) for one in noise])
    positive = np.array([raw.strength(one, weights) for one in answered])
    slope, intercept = logistic_curve(negative, positive)
    curve = replace(raw, slope=slope, intercept=intercept, learned_from=source)
    return replace(curve, level=curve.probability(float(np.quantile(negative, NOISE_QUANTILE))))


@cache
def unrelated_texts() -> dict[str, list[str]]:
    """Return sentences of everyday life by language; the English ones are about subjects so far
    apart that a catalog is about few of them.
    """
    path = Path(__file__).with_name("unrelated_texts.json")
    texts: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return texts


def foreign(keys: TermKeys, analyzer: Analyzer) -> list[str]:
    """Sentences in the languages that the catalog is not in."""

    def known(sentences: Sequence[str]) -> float:
        """The share of words, and of characters where there are no spaces, that some item has."""
        found = {term for sentence in sentences for term in analyzer.key_terms(sentence)}
        terms = [term for term in found - stop_words() if len(term) == 1 or not IS_CJK(term)]
        return float(np.mean([keys.n_with(term) > 0 for term in terms]))

    return [
        sentence
        for language, sentences in unrelated_texts().items()
        if language != "English" and known(sentences) < MOST_KNOWN
        for sentence in sentences
    ]


def shuffled(text: str, rng: np.random.Generator) -> str:
    """The letters of each word in another order."""
    return " ".join("".join(rng.permutation(list(word))) for word in text.split())


def half_shuffled(text: str, rng: np.random.Generator) -> str:
    """The letters of every other word in another order, from the second on."""
    words = text.split()
    words[1::2] = [shuffled(word, rng) for word in words[1::2]]
    return " ".join(words)


def _measured(
    keys: TermKeys, texts: Sequence[str], best: Mapping[str, np.ndarray], analyzer: Analyzer
) -> list[Evidence]:
    return [
        Evidence.of(keys, analyzer.query_tokens(text), {name: best[name][i] for name in best})
        for i, text in enumerate(texts)
    ]


def _farthest(found: Sequence[Evidence], weights: Mapping[str, float]) -> list[Evidence]:
    """Without those that the catalog may be about."""
    raw = _without_curve(found)
    order = np.argsort([raw.strength(one, weights) for one in found])
    return [found[i] for i in order[: round(len(found) * (1 - MAY_BE_MEANT))]]


def _without_curve(noise: Sequence[Evidence]) -> Answerability:
    """Of letters in which there is no such text what all of them say."""
    spread = {}
    for letters in (LATIN, OTHER):
        alike = [one for one in noise if one.letters == letters] or noise
        values = {name: np.array([one.found[name] for one in alike]) for name in alike[0].found}
        spread[letters] = {name: _mean_and_deviation(name, of) for name, of in values.items()}
    return Answerability(spread, 1.0, 0.0, 0.5, "")


def _mean_and_deviation(name: str, values: np.ndarray) -> tuple[float, float]:
    smallest = SMALLEST.get(name, SMALLEST_COSINE)
    return float(values.mean()), max(float(values.std()), smallest)


def logistic_curve(negative: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    """Slope ≥ 0 and intercept of the likeliest logistic curve, both sides counted alike, towards a
    slope of 1 by as much as one text of each. Either side may be empty.

    >>> slope, intercept = logistic_curve(np.array([-1.0, 0.0]), np.array([2.0, 3.0]))
    >>> round(-intercept / slope, 2)
    1.0
    """
    from scipy.optimize import minimize

    values = np.concatenate([negative, positive])
    sides = np.concatenate([-np.ones(len(negative)), np.ones(len(positive))])
    counts = np.where(sides < 0, 0.5 / max(len(negative), 1), 0.5 / max(len(positive), 1))
    prior = 1 / max(min(len(negative), len(positive)), 1)

    def loss(line: np.ndarray) -> tuple[float, np.ndarray]:
        slope, intercept = line
        margins = sides * (slope * values + intercept)
        wrong = np.exp(-np.logaddexp(0, margins))
        value = counts @ np.logaddexp(0, -margins) + prior * (slope - 1) ** 2
        pull = -counts * sides * wrong
        return float(value), np.array([pull @ values + 2 * prior * (slope - 1), pull.sum()])

    bounds = [(0, None), (-20, 20)]
    best = minimize(loss, np.array([1.0, 0.0]), jac=True, bounds=bounds, method="L-BFGS-B").x
    return float(best[0]), float(best[1])

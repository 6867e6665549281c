"""Calibration of answerability: texts that a catalog cannot answer, measured beside queries that it
answers.

The former are sentences in other languages and on other subjects, and words with shuffled letters;
the latter are queries made of its texts, or its titles.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from qkvsearch.heads.answerability import (
    LATIN,
    OTHER,
    WORDS,
    Answerability,
    BestScore,
    Evidence,
    WordStatistics,
)
from qkvsearch.heads.bm25 import LexicalKeys, TermKeys
from qkvsearch.imports import leaving_no_trace
from qkvsearch.learn.training_queries import AnsweredQueries, lexical_scores
from qkvsearch.text.analysis import IS_CJK, Analyzer
from qkvsearch.text.languages import stop_words
from qkvsearch.text.text_encoder import TextEncoder

# If a catalog has a larger share of a language's words, that may be the language of the catalog.
MAX_KNOWN = 0.2
# The share of sentences on other subjects, the most similar ones, that the catalog may be about.
MAYBE_RELATED = 0.5
N_SHUFFLED, N_TITLES = 50, 200
# A smaller deviation means that there were few texts, not that all texts are similar.
MIN_DEVIATION = {WORDS: 0.04, "lexical": 0.3}
MIN_COSINE_DEVIATION = 0.04
# The same of scores in standard deviations from the mean of all items.
MIN_RELATIVE_DEVIATION = 0.3
# An encoder by which texts that cannot be answered have a higher mean cosine with their best items
# finds all texts similar, as E5 does.
MAX_UNRELATED_COSINE = 0.5
# The share of texts that cannot be answered which are below the level.
NOISE_QUANTILE = 0.95
# Scores in memory at a time, of all items and a batch of texts: 64 MiB.
MAX_SCORES = 1 << 24

# Texts to each head's best scores, of arrays (n_texts,).
BestScores = Callable[[Sequence[str]], Mapping[str, BestScore]]


def best_scores(
    lexical: LexicalKeys,
    encoders: Mapping[str, TextEncoder],
    keys: Mapping[str, np.ndarray],
    analyzer: Analyzer,
) -> BestScores:
    """Return the function that computes the best score of each head of a build.

    encoders, keys: of the dense heads, by name; keys are (n_items, d).
    """
    batch_size = max(1, MAX_SCORES // lexical.n_items)

    def highest(score: Callable[[Sequence[str]], np.ndarray], texts: Sequence[str]) -> BestScore:
        batches = (texts[i : i + batch_size] for i in range(0, len(texts), batch_size))
        of_batches = [BestScore.of_rows(score(batch)) for batch in batches]
        return BestScore(*map(np.concatenate, zip(*of_batches, strict=True)))

    def cosines(name: str, batch: Sequence[str]) -> np.ndarray:
        return encoders[name].encode_queries(batch) @ keys[name].T

    def by_words(batch: Sequence[str]) -> np.ndarray:
        return lexical_scores(lexical, batch, analyzer)

    def best(texts: Sequence[str]) -> dict[str, BestScore]:
        dense = {name: highest(partial(cosines, name), texts) for name in encoders}
        return {"lexical": highest(by_words, texts), **dense}

    return best


def calibrate(
    keys: TermKeys,
    best: BestScores,
    weights: Mapping[str, float],
    titles: Sequence[str],
    made: Sequence[AnsweredQueries] = (),
    analyzer: Analyzer | None = None,
) -> Answerability:
    """Measure texts that the catalog cannot answer, and fit the curve to those that it answers.

    The latter are made queries. Where there are none, they are titles with every other word
    shuffled, since a query rarely has all words of an item.

    best: computes the best scores of the heads of `weights`, "lexical" included.
    """
    reader = analyzer or Analyzer()
    rng = np.random.default_rng(0)
    sample = [titles[i] for i in rng.permutation(len(titles))[:N_TITLES]]
    mixed = [shuffled(text, rng) for text in sample[:N_SHUFFLED]]
    strange = [*foreign(keys, reader), *mixed]
    relative = _relative(best(strange)) if strange else []
    empty = Answerability({}, 1.0, 0.0, 0.5, "", relative)

    def measured(texts: Sequence[str]) -> list[Evidence]:
        return _measured(keys, texts, empty.values(best(texts)), reader) if texts else []

    noise = measured(strange)
    noise += _farthest(measured(unrelated_texts()["English"]), weights, relative)
    raw = _without_curve(noise, relative)
    if made:
        answered = [
            evidence
            for queries in made
            for evidence in _measured(
                queries.keys, queries.texts, empty.values(queries.best), reader
            )
        ]
        source = f"{len(answered):,} made queries"
    else:
        halves = [half_shuffled(text, rng) for text in sample]
        answered, source = measured(halves), f"{len(halves):,} titles"
    negative = np.array([raw.strength(evidence, weights) for evidence in noise])
    positive = np.array([raw.strength(evidence, weights) for evidence in answered])
    slope, intercept = logistic_curve(negative, positive)
    curve = replace(raw, slope=slope, intercept=intercept, learned_from=source)
    return replace(curve, level=curve.probability(float(np.quantile(negative, NOISE_QUANTILE))))


@cache
def unrelated_texts() -> dict[str, list[str]]:
    """Return sentences of everyday life by language. The English ones are about subjects so far
    apart that a catalog is about few of them.
    """
    path = Path(__file__).with_name("unrelated_texts.json")
    texts: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return texts


def foreign(keys: TermKeys, analyzer: Analyzer) -> list[str]:
    """Return sentences in languages other than the catalog's."""

    def known(sentences: Sequence[str]) -> float:
        """Return the share of words, or characters where there are no spaces, that are in items."""
        all_terms = {term for sentence in sentences for term in analyzer.key_terms(sentence)}
        terms = [term for term in all_terms - stop_words() if len(term) == 1 or not IS_CJK(term)]
        return float(np.mean([keys.n_with(term) > 0 for term in terms]))

    return [
        sentence
        for language, sentences in unrelated_texts().items()
        if language != "English" and known(sentences) < MAX_KNOWN
        for sentence in sentences
    ]


def shuffled(text: str, rng: np.random.Generator) -> str:
    """Shuffle the letters of each word."""
    return " ".join("".join(rng.permutation(list(word))) for word in text.split())


def half_shuffled(text: str, rng: np.random.Generator) -> str:
    """Shuffle the letters of every other word, from the second on."""
    words = text.split()
    words[1::2] = [shuffled(word, rng) for word in words[1::2]]
    return " ".join(words)


def _measured(
    keys: TermKeys, texts: Sequence[str], best: Mapping[str, np.ndarray], analyzer: Analyzer
) -> list[Evidence]:
    """Return the evidence that items answer each text. best: of each head, float (n_texts,)."""
    measured = []
    for i, text in enumerate(texts):
        words = WordStatistics.of(keys, analyzer.query_tokens(text))
        measured.append(words.evidence({name: scores[i] for name, scores in best.items()}))
    return measured


def _relative(noise: Mapping[str, BestScore]) -> list[str]:
    """Return the heads to which even texts about something else are similar."""
    return [
        name
        for name, best in noise.items()
        if name != "lexical" and best.score.mean() > MAX_UNRELATED_COSINE
    ]


def _farthest(
    noise: Sequence[Evidence], weights: Mapping[str, float], relative: Sequence[str]
) -> list[Evidence]:
    """Return the evidence of the texts that the catalog is least likely to be about."""
    raw = _without_curve(noise, relative)
    order = np.argsort([raw.strength(evidence, weights) for evidence in noise])
    return [noise[i] for i in order[: round(len(noise) * (1 - MAYBE_RELATED))]]


def _without_curve(noise: Sequence[Evidence], relative: Sequence[str]) -> Answerability:
    """Measure the evidence by kind of letters; of a kind without texts, by all texts."""
    spread = {}
    for letters in (LATIN, OTHER):
        group = [evidence for evidence in noise if evidence.letters == letters]
        if not group:
            group = list(noise)
        spread[letters] = {
            name: _mean_and_deviation(
                np.array([each.values[name] for each in group]),
                smallest=_smallest_deviation(name, relative),
            )
            for name in group[0].values
        }
    return Answerability(spread, 1.0, 0.0, 0.5, "", relative)


def _smallest_deviation(name: str, relative: Sequence[str]) -> float:
    if name in relative:
        return MIN_RELATIVE_DEVIATION
    return MIN_DEVIATION.get(name, MIN_COSINE_DEVIATION)


def _mean_and_deviation(values: np.ndarray, smallest: float) -> tuple[float, float]:
    return float(values.mean()), max(float(values.std()), smallest)


def logistic_curve(negative: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    """Return slope ≥ 0 and intercept of the most likely logistic curve. Both sides have the same
    weight, and a prior for a slope of 1 counts like one text of each. Either side may be empty.

    >>> slope, intercept = logistic_curve(np.array([-1.0, 0.0]), np.array([2.0, 3.0]))
    >>> round(-intercept / slope, 2)
    1.0
    """
    with leaving_no_trace("scipy.optimize"):
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

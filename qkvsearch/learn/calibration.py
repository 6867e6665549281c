"""Calibration of answerability: texts that a catalog cannot answer, measured beside queries that it
answers.

The former are sentences in other languages and on other subjects, and words with shuffled letters;
the latter are queries made of its texts, or its titles.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from math import log, pi, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np

from qkvsearch._utils.scratch import give_back, pieces_of
from qkvsearch._utils.threads import one_blas_thread
from qkvsearch.heads.answerability import (
    LATIN,
    OTHER,
    WORDS,
    Answerability,
    BestScore,
    Evidence,
    WordStatistics,
)
from qkvsearch.heads.bm25 import ListedKeys, TermKeys
from qkvsearch.imports import leaving_no_trace
from qkvsearch.learn.training_queries import AnsweredQueries, lexical_scores
from qkvsearch.text.analysis import IS_UNSPACED, Analyzer, is_unit
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.languages import stop_words
from qkvsearch.text.text_encoder import TextEncoder

# If a catalog has so large a share of a language's words, that may be the language of the catalog.
MAX_KNOWN = 0.2
# The share of sentences on other subjects, the most similar ones, that the catalog may be about.
MAYBE_RELATED = 0.5
N_SHUFFLED, N_TITLES = 50, 200
# A smaller deviation means that there were few texts, not that all texts are similar.
MIN_DEVIATION = {WORDS: 0.04, "lexical": 0.3}
MIN_COSINE_DEVIATION = 0.04
# An encoder by which texts that cannot be answered have a higher mean cosine with their best items
# finds all texts similar, as E5 does.
MAX_UNRELATED_COSINE = 0.5
# The share of texts that cannot be answered which are below the level.
NOISE_QUANTILE = 0.95
# Stronger evidence is always more of an answer, also where titles tell nothing of the texts.
MIN_SLOPE = 0.05
# Scores in memory at a time, of all items and a batch of texts: 16 MiB, and twice that as float64.
MAX_SCORES = 1 << 22
# Keys that are read at a time: those of a large catalog are in a file.
KEYS_AT_ONCE = 1 << 14

# Texts to each head's best scores, of arrays (n_texts,).
BestScores = Callable[[Sequence[str]], Mapping[str, BestScore]]


def best_scores(
    lexical: ListedKeys,
    encoders: Mapping[str, TextEncoder],
    keys: Mapping[str, np.ndarray],
    analyzer: Analyzer,
) -> BestScores:
    """Return the function that computes the best score of each head of a build.

    encoders, keys: of the dense heads, by name; keys are (n_items, d).
    """
    batch_size = max(1, MAX_SCORES // lexical.n_items)

    def highest(score: Callable[[Sequence[str]], np.ndarray], texts: AnalyzedTexts) -> BestScore:
        if len(texts) <= batch_size:
            return BestScore.of_rows(score(texts))
        batches = (texts[i : i + batch_size] for i in range(0, len(texts), batch_size))
        of_batches = [BestScore.of_rows(score(batch)) for batch in batches]
        return BestScore(*map(np.concatenate, zip(*of_batches, strict=True)))

    def cosines(name: str, batch: Sequence[str]) -> np.ndarray:
        queries, of_items = encoders[name].encode_queries(batch), keys[name]
        scores = np.empty((len(batch), len(of_items)), np.float32)
        for span in pieces_of(len(of_items), KEYS_AT_ONCE):
            scores[:, span] = queries @ of_items[span].T
            give_back(of_items)
        return scores

    def by_words(batch: Sequence[str]) -> np.ndarray:
        return lexical_scores(lexical, batch, analyzer)

    def best(texts: Sequence[str]) -> dict[str, BestScore]:
        # All encoders that were learned from the catalog read the same words of them.
        analyzed = AnalyzedTexts.of(texts, analyzer)
        dense = {name: highest(partial(cosines, name), analyzed) for name in encoders}
        return {"lexical": highest(by_words, analyzed), **dense}

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
    of_strange = best(strange) if strange else {}
    relative = _relative(of_strange)
    empty = Answerability({}, 1.0, 0.0, 0.5, "", relative)

    def measured(texts: Sequence[str], scores: Mapping[str, BestScore]) -> list[Evidence]:
        return _measured(keys, texts, empty.values(scores), reader)

    noise = measured(strange, of_strange)
    for texts in other_subjects(keys, reader):
        evidence = measured(texts, best(texts))
        alone = _without_curve(evidence, relative, keys.n_items)
        noise += _farthest(evidence, weights, alone)
    raw = _without_curve(noise, relative, keys.n_items)
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
        answered = measured(halves, best(halves)) if halves else []
        source = f"{len(halves):,} titles"
    negative = np.array([raw.strength(evidence, weights) for evidence in noise])
    positive = np.array([raw.strength(evidence, weights) for evidence in answered])
    slope, intercept = logistic_curve(negative, positive)
    curve = replace(raw, slope=slope, intercept=intercept, learned_from=source)
    return replace(curve, level=curve.probability(float(np.quantile(negative, NOISE_QUANTILE))))


class UnrelatedTexts(NamedTuple):
    """Texts that few catalogs answer, by language."""

    # Of everyday life, few for each language.
    sentences: Mapping[str, Sequence[str]]
    # About subjects so far apart that a catalog is about few of them, for some languages.
    subjects: Mapping[str, Sequence[str]]


@cache
def unrelated_texts() -> UnrelatedTexts:
    """Read the texts."""
    path = Path(__file__).with_name("unrelated_texts.json")
    return UnrelatedTexts(**json.loads(path.read_text(encoding="utf-8")))


def foreign(keys: TermKeys, analyzer: Analyzer) -> list[str]:
    """Return sentences in languages other than the catalog's and English."""
    return [
        sentence
        for sentences in unrelated_texts().sentences.values()
        if not _is_known(sentences, keys, analyzer)
        for sentence in sentences
    ]


def other_subjects(keys: TermKeys, analyzer: Analyzer) -> Iterator[Sequence[str]]:
    """Yield texts about many subjects: in English, and in other languages of the catalog."""
    unrelated = unrelated_texts()
    for language, texts in unrelated.subjects.items():
        sentences = unrelated.sentences.get(language)
        if sentences is None or _is_known(sentences, keys, analyzer):
            yield texts


def _is_known(sentences: Sequence[str], keys: TermKeys, analyzer: Analyzer) -> bool:
    """Return whether a catalog may be in the language of sentences: whether its items have more
    than a few of their words, or characters where there are no spaces.
    """
    all_terms = {term for sentence in sentences for term in analyzer.key_terms(sentence)}
    terms = [term for term in all_terms - stop_words() if is_unit(term) or not IS_UNSPACED(term)]
    return float(np.mean([keys.n_with(term) > 0 for term in terms])) >= MAX_KNOWN


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
    noise: Sequence[Evidence], weights: Mapping[str, float], raw: Answerability
) -> list[Evidence]:
    """Return the evidence of the texts that the catalog is least likely to be about.

    raw: without a curve.
    """
    order = np.argsort([raw.strength(evidence, weights) for evidence in noise])
    return [noise[i] for i in order[: round(len(noise) * (1 - MAYBE_RELATED))]]


def _without_curve(
    noise: Sequence[Evidence], relative: Sequence[str], n_items: int
) -> Answerability:
    """Measure the evidence by kind of letters; of a kind without texts, by all texts.

    What stands out by a relative head is not measured: in a catalog with a few items in another
    language, these stand out for every text in it, whatever the text is about.
    """
    spread = {}
    for letters in (LATIN, OTHER):
        group = [evidence for evidence in noise if evidence.letters == letters]
        if not group:
            group = list(noise)
        spread[letters] = {
            name: largest_of(n_items)
            if name in relative
            else _mean_and_deviation(
                np.array([each.values[name] for each in group]),
                smallest=MIN_DEVIATION.get(name, MIN_COSINE_DEVIATION),
            )
            for name in group[0].values
        }
    return Answerability(spread, 1.0, 0.0, 0.5, "", relative)


def largest_of(n: int) -> tuple[float, float]:
    """Return mean and standard deviation of the largest of n standard normal values, about.

    The mean is Blom's (1958, "Statistical estimates and transformed beta-variables", chapter 6),
    the deviation is that of the limiting Gumbel distribution.

    >>> mean, deviation = largest_of(1000)
    >>> round(mean, 2), round(deviation, 2)
    (3.23, 0.35)
    """
    with leaving_no_trace("scipy.special"):
        from scipy.special import ndtri

    mean = float(ndtri((n - 0.375) / (n + 0.25)))
    return mean, pi / sqrt(6) / sqrt(2 * log(max(n, 2)))


def _mean_and_deviation(values: np.ndarray, smallest: float) -> tuple[float, float]:
    return float(values.mean()), max(float(values.std()), smallest)


def logistic_curve(negative: np.ndarray, positive: np.ndarray) -> tuple[float, float]:
    """Return slope ≥ `MIN_SLOPE` and intercept of the most likely logistic curve.

    Both sides have the same weight, and a prior for a slope of 1 counts like one text of each.
    Either side may be empty.

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

    bounds = [(MIN_SLOPE, None), (-20, 20)]
    # Two numbers are no work for several threads, which would wait for one another.
    with one_blas_thread():
        best = minimize(loss, np.array([1.0, 0.0]), jac=True, bounds=bounds, method="L-BFGS-B").x
    return float(best[0]), float(best[1])

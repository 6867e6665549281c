"""Compare a catalog with common subjects, for queries whose words it lacks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qkvsearch._utils.scratch import give_back, pieces_of
from qkvsearch.heads.answerability import LATIN, OTHER, letters_of
from qkvsearch.heads.common_subjects import (
    KEYS_AT_ONCE,
    QUERY_SHARE,
    CommonSubjects,
    common_to_items,
    mean_of_nearest,
    other_letters,
    subject_names,
)
from qkvsearch.learn.calibration import unrelated_texts
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.text_encoder import TextEncoder

# The share of the sentences on other subjects that the catalog may be about: those nearest to its
# items.
MAYBE_RELATED = 0.3
# The share of the subjects, as queries, that no item answers, and that of the sentences, of which
# there are fewer (`common_subjects.py` among the benchmarks).
FAR, FAR_SENTENCES = 0.85, 0.6
# The language of the sentences by kind of letters.
SENTENCES = {LATIN: "English", OTHER: "Chinese"}
# An encoder knows both languages if it finds so many of the subjects by their translations.
MIN_TRANSLATED = 0.5
CHINESE = "zh"
# Titles that tell in which letters a catalog is.
N_TITLES = 200


def common_subjects(
    encoder: TextEncoder,
    keys: np.ndarray,
    titles: Sequence[str],
    analyzer: Analyzer,
    languages: Sequence[str],
) -> CommonSubjects | None:
    """Return what queries to a catalog are compared with; None where its texts are in letters
    without subjects, or the encoder does not know both languages.

    keys: by which a search ranks, (n_items, d). languages: the ISO codes of the texts' languages.
    """
    if CHINESE in languages[:1]:
        letters = OTHER  # also where titles are names of brands
    else:
        sample = titles[:: max(1, len(titles) // N_TITLES)]
        letters = letters_of(analyzer.tokens(" ".join(sample)))
        if letters != LATIN:
            return None
    names = subject_names()
    subjects = {kind: encoder.encode_queries(of_kind) for kind, of_kind in names.items()}
    between = subjects[other_letters(letters)] @ encoder.encode_many(names[letters]).T
    if np.mean(between.argmax(axis=1) == np.arange(len(between))) < MIN_TRANSLATED:
        return None
    of_language = unrelated_texts().subjects
    texts = encoder.encode_many(of_language[SENTENCES[letters]])
    largest = np.full(len(texts), -np.inf)
    for span in pieces_of(len(keys), KEYS_AT_ONCE):
        largest = np.maximum(largest, (texts @ keys[span].T).max(axis=1))
        give_back(keys)
    texts = texts[largest <= np.quantile(largest, 1 - MAYBE_RELATED)]

    def highest(queries: np.ndarray, kind: str) -> np.ndarray:
        """Return the highest score of each query in such letters, less what is common to the item
        and to the query.
        """
        spans = list(pieces_of(len(keys), KEYS_AT_ONCE))
        common = common_to_items((keys[span] for span in spans), subjects[kind])
        best = np.full(len(queries), -np.inf)
        for span in spans:
            best = np.maximum(best, (queries @ keys[span].T - common[span]).max(axis=1))
            give_back(keys)
        return best - QUERY_SHARE * mean_of_nearest(queries @ texts.T)

    other = other_letters(letters)
    sentences = encoder.encode_queries(of_language[SENTENCES[other]])
    return CommonSubjects(
        letters=letters,
        texts=texts,
        subjects=subjects,
        levels={
            kind: float(np.quantile(highest(names_of_kind, kind), FAR))
            for kind, names_of_kind in subjects.items()
        },
        level_of_sentences=float(np.quantile(highest(sentences, other), FAR_SENTENCES)),
    )

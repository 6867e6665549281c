"""Queries whose words the catalog lacks: 帐篷 or "Zelt", typed to a shop with English texts.

Only an encoder of many languages can tell which items are meant. Its cosines alone do not. Some
items are similar to every such query, first of all those in the query's own language; and some
queries are similar to every text. So a score is compared with others (cross-domain similarity local
scaling: Conneau et al. 2018, "Word translation without parallel data", section 2.3). From an item's
score is subtracted what it has in common with queries about anything: common subjects, such as
"teeth" and "bicycles", in the letters of the query. What the query has in common with texts about
something else decides how high a score must be to answer it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from qkvsearch._utils.scratch import pieces_of
from qkvsearch.heads.answerability import LATIN, OTHER, WordStatistics
from qkvsearch.heads.component import BuildModels, IndexComponent
from qkvsearch.heads.dense_keys import WHOLE_TEXT, ItemKeys
from qkvsearch.scores.components import Components, ScoreComponent
from qkvsearch.scores.fusion import Scores
from qkvsearch.store import BuildContents
from qkvsearch.store.array_spec import ArraySpec

# The name among the facts of a build.
FACT = "common_subjects"
# How many of the most similar subjects, or texts, a cosine is compared with, as Conneau et al. do.
N_NEIGHBOURS = 10
# How much of its mean cosine with the nearest subjects is subtracted from an item's score. Conneau
# et al. have .5, for texts in one language each. Where a catalog has texts in both, more is needed
# to bring up those in the other one (`common_subjects.py` among the benchmarks).
ITEM_SHARE = 0.9
# The same of a query and the nearest texts, where it is asked whether an item answers it.
QUERY_SHARE = 0.6
# The label of what an item has in common with any query, a token as those that encoders add.
ANY_QUERY = "[ANY]"
# Where the catalog has a larger share of the words, they tell more.
MAX_KNOWN = 0.5
# A query of more words is a sentence. In scripts without spaces words are pairs of characters.
MAX_WORDS = 5
# Keys that are read at a time: those of a large catalog are in a file.
KEYS_AT_ONCE = 1 << 14


@cache
def subject_names() -> Mapping[str, Sequence[str]]:
    """Return the names of the subjects, in the same order, by kind of letters: in English and in
    Chinese.
    """
    path = Path(__file__).with_suffix(".json")
    names: Mapping[str, Sequence[str]] = json.loads(path.read_text(encoding="utf-8"))
    return names


def other_letters(letters: str) -> str:
    """Return the kind of letters that is not this one."""
    return OTHER if letters == LATIN else LATIN


def mean_of_nearest(cosines: np.ndarray) -> np.ndarray:
    """Return the mean of the `N_NEIGHBOURS` largest of each row, (n,). cosines: (n, m)."""
    n = min(N_NEIGHBOURS, cosines.shape[1])
    return np.asarray(np.partition(cosines, -n, axis=1)[:, -n:].mean(axis=1))


@dataclass(frozen=True)
class CommonSubjects:
    """What items, and queries whose words the catalog lacks, are compared with."""

    # The kind of letters of the catalog.
    letters: str
    # Texts about something else in these letters, as items are encoded, float32 (n, d).
    texts: np.ndarray
    # By kind of letters, the subjects as queries are encoded, float32 (m, d).
    subjects: Mapping[str, np.ndarray]
    # By kind of letters, above how high a score, less what is common to the query, an item answers
    # a query of few words.
    levels: Mapping[str, float]
    # The same of a sentence in other letters than the catalog's. Sentences have higher cosines.
    level_of_sentences: float

    def compares(self, words: WordStatistics) -> bool:
        """Return whether a query with these words is compared: most of them are unknown, and it is
        in other letters than the catalog's or short. A sentence in the catalog's letters is not.
        """
        return words.share < MAX_KNOWN and (self.is_in_other_letters(words) or is_short(words))

    def is_in_other_letters(self, words: WordStatistics) -> bool:
        """Return whether a query is in other letters than the catalog's."""
        return words.letters != self.letters

    def of_items(self, keys: ItemKeys[Any], letters: str) -> np.ndarray:
        """Return `common_to_items` with subjects in these letters."""
        spans = pieces_of(len(keys), KEYS_AT_ONCE)
        rows = (keys.rows(np.arange(span.start, span.stop)) for span in spans)
        return common_to_items(rows, self.subjects[letters])

    def answers(self, scores: Scores, query: np.ndarray, words: WordStatistics) -> np.ndarray:
        """Return which items answer a query, bool (n_items,). Beside the best one, these are a
        standard deviation above the mean: some queries are similar to half of a catalog.

        scores: without what is common to items. query: its embedding (d,).
        """
        of_query = QUERY_SHARE * float(mean_of_nearest((self.texts @ query)[None])[0])
        level = self.levels[words.letters] if is_short(words) else self.level_of_sentences
        mean, deviation = scores.moments
        standing_out = min(mean + deviation, float(scores.scores.max()))
        return np.asarray(scores.scores >= max(level + of_query, standing_out))


def common_to_items(keys: Iterable[np.ndarray], subjects: np.ndarray) -> np.ndarray:
    """Return how much more each item has in common with queries about anything than the average
    item has, float32 (n_items,).

    keys: of the items, in pieces, (n, d) each. subjects: as queries, (m, d).
    """
    common = np.concatenate([mean_of_nearest(piece @ subjects.T) for piece in keys])
    return np.asarray(ITEM_SHARE * (common - common.mean(dtype=np.float64)), dtype=np.float32)


def is_short(words: WordStatistics) -> bool:
    """Return whether a query has as few words as the name of a subject."""
    return words.n <= MAX_WORDS


def without_common(scores: Scores, common: np.ndarray) -> Scores:
    """Return scores less what is common to items, (n_items,), with parts that add up to them."""

    def parts(position: int) -> Components:
        subtracted = ScoreComponent(scores.name, ANY_QUERY, WHOLE_TEXT, -float(common[position]))
        return Components.joined([scores.parts(position), Components.of([subtracted])])

    return Scores(scores.name, scores.scores - common, parts, scores.covered)


@dataclass(frozen=True)
class SubjectsComponent(IndexComponent[CommonSubjects]):
    """What queries are compared with. `group`: the main dense head."""

    arrays: ClassVar = {
        "subjects_latin": ArraySpec("f", ("subjects", "components")),
        "subjects_other": ArraySpec("f", ("subjects", "components")),
        "other_texts": ArraySpec("f", ("texts", "components")),
    }

    def store(self, contents: BuildContents, subjects: CommonSubjects | None) -> None:
        """Store what is compared; None where there is nothing."""
        if subjects is None:
            self.put(contents, **dict.fromkeys(self.arrays))
            contents.facts.pop(FACT, None)
            return
        arrays = {f"subjects_{letters}": keys for letters, keys in subjects.subjects.items()}
        self.put(contents, other_texts=subjects.texts, **arrays)
        contents.facts[FACT] = {
            "letters": subjects.letters,
            "levels": dict(subjects.levels),
            "level_of_sentences": subjects.level_of_sentences,
        }

    def load(self, models: BuildModels) -> CommonSubjects:
        arrays = self.read(models.snapshot)
        subjects = {letters: arrays[f"subjects_{letters}"] for letters in (LATIN, OTHER)}
        texts = arrays["other_texts"]
        return CommonSubjects(texts=texts, subjects=subjects, **models.snapshot.facts[FACT])

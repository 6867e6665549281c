"""What the match grades of a search are worth: how many hits of each grade are right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from qkvsearch.evaluation.groups import GradeGroup
from qkvsearch.evaluation.metrics import Grades, interval, resampled_means
from qkvsearch.rank.ranking import Hit
from qkvsearch.tables.ids import id_text

# From the best to the worst.
MATCHES = ("strong", "good", "weak")
# So many hits of each query count.
N_HITS = 10


def by_grade(
    rankings: Sequence[Iterable[Hit]], judged: Sequence[Grades], random_state: int = 0
) -> dict[str, GradeGroup]:
    """Return the share of right hits among those of each match grade, of the first ten hits.

    rankings, judged: of each query, its hits and the grades of its items by id. A hit is right if
    its grade is at least 1; one that nobody judged is not. Hits of the same query depend on one
    another, so intervals are bootstrapped over queries.
    """
    n_hits = {match: np.zeros(len(rankings)) for match in MATCHES}
    n_right = {match: np.zeros(len(rankings)) for match in MATCHES}
    for query, (hits, grades) in enumerate(zip(rankings, judged, strict=True)):
        for hit in hits:
            if hit.rank <= N_HITS and hit.match in n_hits:
                n_hits[hit.match][query] += 1
                n_right[hit.match][query] += grades.get(id_text(hit.id), 0) >= 1
    return {match: _group(n_hits[match], n_right[match], random_state) for match in MATCHES}


def _group(n_hits: np.ndarray, n_right: np.ndarray, random_state: int) -> GradeGroup:
    has_hits = n_hits > 0
    total = int(n_hits.sum())
    if not total:
        return GradeGroup(0, None, None)
    samples = resampled_means(n_right[has_hits, None], n_hits[has_hits], random_state=random_state)
    return GradeGroup(total, float(n_right.sum() / total), interval(samples))


def have_grades(groups: Mapping[str, GradeGroup]) -> bool:
    """Return whether any hit has a grade."""
    return any(group.hits for group in groups.values())

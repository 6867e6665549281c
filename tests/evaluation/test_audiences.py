"""How alike items are by who met them, against the cosine of dense columns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from qkvsearch.evaluation import audiences
from qkvsearch.evaluation.audiences import AudienceSimilarity, shared_users
from qkvsearch.evaluation.metrics import diversity

RANKINGS = [[4, 1, 7], [2], [], [7, 4, 0, 5]]


def by_columns(met):
    columns = met.toarray() > 0
    norms = np.sqrt(columns.sum(axis=0))
    return columns.T.astype(int) @ columns / np.maximum(np.outer(norms, norms), 1)


@pytest.mark.parametrize("at_once", [1, 1 << 26])
def test_pairs_have_the_cosine_of_their_columns(scattered, monkeypatch, at_once):
    monkeypatch.setattr(audiences, "BYTES_AT_ONCE", at_once)
    monkeypatch.setattr(audiences, "PAIRS_AT_ONCE", at_once)
    met = csr_matrix(np.tile(scattered.toarray(), (5, 1)))  # more users than bits in a word
    expected, alike = by_columns(met), AudienceSimilarity(met, RANKINGS)
    for ranked in RANKINGS:
        for left in ranked:
            right = [item for item in ranked if item != left]
            found = alike([left] * len(right), right)
            assert found == pytest.approx(expected[left, right])


def test_diversity_of_lists_by_hand():
    # Items 0 and 1 share both users, 2 has another; 3 nobody.
    met = csr_matrix([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0]])
    lists = [[0, 1], [0, 2], [0, 1, 2], [3, 0], [2], []]
    alike = AudienceSimilarity(met, lists)
    found = [diversity(ranked, alike) for ranked in lists]
    assert found == pytest.approx([0, 1, 2 / 3, 1, 0, 0])


def test_no_pairs_are_no_work(scattered):
    assert len(shared_users(scattered, np.zeros(0, int), np.zeros(0, int))) == 0
    assert len(AudienceSimilarity(scattered, []).cosines) == 0

"""Figures of a real log stay where they are. Needs QKVSEARCH_DATA, a folder with ml-100k."""

import os
from pathlib import Path

import pytest

from qkvsearch.data.sources import read_movielens
from qkvsearch.evaluation.recommend_protocol import evaluate_recommend

DATA = os.environ.get("QKVSEARCH_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="QKVSEARCH_DATA names no folder with ml-100k")


@pytest.mark.parametrize("protocol", ["random", "strong"])
def test_ours_is_ahead_of_every_baseline_or_level_with_it(protocol):
    found = evaluate_recommend(read_movielens(Path(DATA, "ml-100k")).interactions, protocol)
    assert found.metrics["ndcg@10"] > 0.39
    assert found.baselines["ease"]["ndcg@10"] > 0.38
    assert found.baselines["item-knn"]["ndcg@10"] > 0.33
    assert found.differences["ndcg@10"].high > 0
    assert found.differences["rmse"].high < 0

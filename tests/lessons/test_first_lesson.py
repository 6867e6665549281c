"""Lesson 0: its weights are those of the search box and of the recommender."""

import numpy as np
import pytest

from qkvsearch.lessons.compute.videos import VIDEOS
from qkvsearch.lessons.drawings import Flow

QUERIES = {"search": "transformer", "context": "transformer toy"}


@pytest.mark.parametrize("name", [*QUERIES, "recommend"])
def test_weights_are_softmax_of_the_engines_scores(taught, videos, name):
    parts = [part for step in taught("ask-match-mix").steps for part in step.parts]
    flows = {part.name: part for part in parts if isinstance(part, Flow)}
    weights = flows[name].steps()["weights"][0]
    if name in QUERIES:
        ranking = videos.search(QUERIES[name], k=100, heads="lexical")
    else:
        ranking = videos.recommend(user="w240", k=400, heads="neighbours")
    scores = {hit.id: hit.score for hit in ranking}
    answered = [video in scores for video in VIDEOS]
    # What viewer 2 has watched is masked.
    assert [video for video in VIDEOS if video not in scores] == ["v157"] * (name == "recommend")
    assert (weights > 0).tolist() == answered
    logs, box = np.log(weights[answered]), np.array([scores[v] for v in VIDEOS if v in scores])
    # The search box also counts "toy transformer" as a pair, and "toy" as a common word.
    np.testing.assert_allclose(np.corrcoef(logs, box), 1, atol=1e-3 if name == "context" else 1e-6)
    if name == "search":  # the engine's scores are in spreads, of two videos more: *transforming*
        assert np.ptp(logs) == pytest.approx(np.ptp(box), rel=0.03)

"""What would have to be gone: the smallest set without which a hit is not among the first k."""

from itertools import combinations

import pytest

# What a recommendation may be asked with beside it.
OPTIONS = {
    "the first alone": {"k": 1},
    "several": {"k": 4},
    "a page": {"k": 2, "offset": 2},
    "by neighbours": {"k": 1, "heads": "neighbours"},
    "by embeddings": {"k": 3, "heads": "collaborative"},
    "recent": {"k": 2, "recent": 3},
    "damped": {"k": 3, "damping": 0.5},
    "diverse": {"k": 3, "diversity": 0.4},
    "seen": {"k": 3, "seen": True},
    "of a kind": {"k": 3, "distinct": "year"},
    "a condition": {"k": 3, "where": "year < 1990"},
    "without one": {"k": 2, "without": ["Heat"]},
    "and a like": {"k": 2, "likes": ["Heat"]},
    "and ratings": {"k": 2, "ratings": {"Alien": 5, "Up": 1}},
}


def is_there(engine, hit, asked, gone):
    """Whether a hit is among the first k where these items are neither liked nor candidates."""
    first = {"k": asked["k"] + asked.get("offset", 0), "offset": 0}
    without = [*asked.get("without", ()), *gone]
    found = engine.recommend(**{**asked, **first, "without": without, "exclude": list(gone)})
    return hit.id in [one.id for one in found]


def check_smallest(engine, asked):
    """Every set is needed as it is told; the sizes of the sets."""
    sizes = []
    for hit in engine.recommend(**asked, explain="smallest"):
        gone = hit.smallest["items"]
        assert len(gone) <= 10
        assert len(set(gone)) == len(gone)
        sizes.append(len(gone))
        if not gone:
            continue
        assert not is_there(engine, hit, asked, gone)
        for item in gone:
            assert is_there(engine, hit, asked, [other for other in gone if other != item])
    return sizes


@pytest.mark.parametrize("name", OPTIONS)
def test_without_the_set_a_hit_is_gone_and_with_any_of_it_there(movies, name):
    sizes = check_smallest(movies, {"user": "u117", **OPTIONS[name]})
    assert any(sizes)


def test_of_an_additive_score_the_set_of_the_first_hit_is_the_smallest_there_is(movies):
    asked = {"k": 1, "heads": "neighbours"}
    sizes = []
    for user in ("u003", "u021", "u117"):
        (hit,) = movies.recommend(user=user, **asked, explain="smallest")
        history = [row["id"] for row in movies.history(user) if row["confidence"] > 0]
        size = len(hit.smallest["items"])
        sizes.append(size)
        for fewer in range(1, min(size, 3)):
            for gone in combinations(history[:12], fewer):
                assert is_there(movies, hit, {"user": user, **asked}, gone)
    assert max(sizes) > 1

"""Items that nobody met: the map from text, its penalty, and what recommend makes of it."""

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.models.cold_start import (
    MIN_ITEMS,
    PENALTIES,
    fit_text_map,
    place_cold_items,
)

TOPICS = ("apple pear plum", "hammer saw drill", "violin cello harp")


@pytest.fixture
def texts():
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(80, 6))
    tastes = keys @ rng.normal(size=(6, 3)) + 0.3 * rng.normal(size=(80, 3))
    tastes[::9] = 0  # nobody met those
    return keys, tastes


def test_the_closed_form_chooses_what_leaving_out_one_by_one_does(texts):
    keys, tastes = texts
    rows = tastes.any(axis=1)
    x, y = keys[rows], tastes[rows]
    penalties = PENALTIES * np.linalg.eigvalsh(x.T @ x).mean()

    def solved(x, y, penalty):
        return np.linalg.solve(x.T @ x + penalty * np.eye(6), x.T @ y)

    def error(penalty):
        others = [np.arange(len(x)) != i for i in range(len(x))]
        return sum(
            ((y[i] - x[i] @ solved(x[o], y[o], penalty)) ** 2).sum() for i, o in enumerate(others)
        )

    best = min(penalties, key=error)
    np.testing.assert_allclose(fit_text_map(keys, tastes), solved(x, y, best), rtol=1e-4)


def test_text_that_tells_nothing_gives_no_map():
    rng = np.random.default_rng(0)
    assert fit_text_map(rng.normal(size=(60, 20)), rng.normal(size=(60, 3))) is None


def test_few_items_give_no_map(texts):
    keys, tastes = (array[:MIN_ITEMS] for array in texts)
    assert fit_text_map(keys, tastes) is None


def test_only_cold_items_are_placed_and_those_without_text_stay_at_zero(texts):
    keys, tastes = texts
    keys[9] = 0
    cold = ~tastes.any(axis=1)
    filled = place_cold_items(tastes, keys, fit_text_map(keys, tastes), cold)
    np.testing.assert_array_equal(filled[~cold], tastes[~cold])
    assert not filled[9].any()
    assert filled[[0, 18, 27]].any(axis=1).all()
    lengths = np.linalg.norm(filled, axis=1)
    assert lengths[cold].max() <= lengths[~cold].mean() * (1 + 1e-6)


@pytest.fixture(scope="module")
def stall(tmp_path_factory):
    """60 things of three kinds, people who buy one kind each, and three things nobody bought."""
    rng = np.random.default_rng(0)
    words = [topic.split() for topic in TOPICS]
    titles = [" ".join([*rng.permutation(words[i % 3])[:2], f"no{i}"]) for i in range(60)]
    items = pd.DataFrame(
        {
            "id": range(63),
            "title": [*titles, *(f"{w[0]} {w[1]} no{i}" for i, w in enumerate(words))],
        }
    )
    pairs = [(u, i) for u in range(45) for i in range(60) if u % 3 == i % 3 and rng.random() < 0.4]
    log = pd.DataFrame(pairs, columns=["user", "item"])
    path = tmp_path_factory.mktemp("stall") / "ws"
    with qkv.build(path, items=items, interactions=log, encoder="corpus") as engine:
        yield engine


@pytest.mark.parametrize("kind", range(3))
def test_a_new_item_goes_to_those_who_like_its_kind(stall, kind):
    ranking = stall.recommend(user=kind, only=[60, 61, 62])
    assert ranking[0].id == 60 + kind
    assert ranking[0].score > 2 * max(hit.score for hit in ranking[1:])


def test_it_does_not_outrank_what_people_of_that_taste_met(stall):
    ranking = stall.recommend(user=0, k=99, seen=True)
    place = {hit.id: hit.rank for hit in ranking}
    kind = [place[i] for i in range(0, 60, 3)]
    assert np.median(kind) - 10 < place[60] <= 33
    assert place[60] > min(kind)


def test_new_items_are_marked_and_their_reasons_add_up(stall, assert_adds_up):
    for hit in stall.recommend(user=1, k=99, explain=True, damping=0.2):
        assert hit.cold == (True if hit.id >= 60 else None)
        assert_adds_up([reason["contribution"] for reason in hit.because], hit.score)


def test_liking_or_recording_a_new_item_counts_like_any_other(stall, assert_adds_up):
    """An item unseen in training is part of a history at once, by its text."""
    ranking = stall.recommend(likes=[61], k=5, explain=True)
    assert {hit.id % 3 for hit in ranking} == {1}
    for hit in ranking:
        assert_adds_up([reason["contribution"] for reason in hit.because], hit.score)
        assert [reason["id"] for reason in hit.because] == [61]
    stall.record(999, 61)
    recorded = stall.recommend(user=999, k=5)
    assert [hit.score for hit in recorded] == pytest.approx([hit.score for hit in ranking])


def test_diversity_compares_new_items_too(stall):
    kinds = {hit.id % 3 for hit in stall.recommend(likes=[61], k=3, diversity=0.9)}
    assert len(kinds) > 1


def test_items_that_join_later_are_placed_at_once(stall, tmp_path):
    import shutil

    from qkvsearch.learn.add import add_items, remove_items
    from qkvsearch.store import Workspace

    path = shutil.copytree(stall.workspace.path, tmp_path / "later")
    add_items(Workspace(path), pd.DataFrame({"id": [70], "title": ["saw drill"]}))
    remove_items(Workspace(path), [2, 5])
    with qkv.open(path) as engine:
        found = {user: engine.recommend(user=user, only=[70])[0] for user in range(3)}
        assert all(hit.cold for hit in found.values())
        assert found[1].score > 2 * max(found[0].score, found[2].score)

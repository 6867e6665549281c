"""The model of what comes next in a workspace: built on request, asked by name, with reasons."""

import json
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.heads.stored_next_item import NextItemComponent
from qkvsearch.models.next_item_model import NextItemModel
from tests.builds import republished

ITEMS = pd.DataFrame({"id": range(12), "title": [f"part {chr(97 + i)}" for i in range(12)]})
USERS, DAYS = np.divmod(np.arange(40 * 8), 8)
LOG = pd.DataFrame({"user": USERS, "item": (USERS + DAYS) % 12, "time": DAYS})


@pytest.fixture
def untrained(tmp_path):
    """A workspace with a model of random weights, which needs no PyTorch."""
    qkv.build(tmp_path, items=ITEMS, interactions=LOG, encoder="corpus").close()
    model = NextItemModel.create(12, 8, 2, 2, 10, rng=0)
    republished(tmp_path, lambda contents: NextItemComponent().store(contents, model))
    with qkv.open(tmp_path) as engine:
        yield engine


def test_reasons_add_up_to_the_score_in_the_order_of_the_history(untrained, assert_adds_up):
    ranking = untrained.recommend(user=3, model="next-item", k=4, explain=True, seen=True)
    for hit in ranking:
        assert_adds_up([part["contribution"] for part in hit.because], hit.score)
        assert {part["id"] for part in hit.because} == {*range(3, 11), None}
    model = untrained.current_build.recommender.next_item
    scores = model.items.weight @ model.fold_in(np.arange(3, 11))
    assert ranking[0].score == pytest.approx(scores.max(), abs=1e-5)


def test_damping_and_diversity_are_parts_too(untrained, assert_adds_up):
    ranking = untrained.recommend(
        user=3, model="next-item", damping=0.5, diversity=0.5, k=3, explain=True
    )
    for hit in ranking:
        assert_adds_up([part["contribution"] for part in hit.because], hit.score)


def test_what_was_recorded_comes_last(untrained):
    before = untrained.recommend(user=3, model="next-item", seen=True)
    untrained.record(3, 0)
    after = untrained.recommend(user=3, model="next-item", seen=True)
    assert [hit.score for hit in before] != [hit.score for hit in after]
    liked = untrained.recommend(likes=[*range(3, 11), 0], model="next-item", seen=True)
    np.testing.assert_allclose([h.score for h in after], [h.score for h in liked], atol=1e-5)


def test_items_join_and_leave_beside_it(untrained, assert_adds_up):
    untrained.add(pd.DataFrame({"id": [12], "title": ["part m"]}))
    untrained.remove([5])
    ranking = untrained.recommend(user=3, model="next-item", seen=True, k=20, explain=True)
    assert {hit.id for hit in ranking} == set(range(12)) - {5}  # nobody met 12
    assert_adds_up([part["contribution"] for part in ranking[0].because], ranking[0].score)


@pytest.mark.parametrize("options", [{}, {"k": 3, "damping": 0.5, "seen": True}], ids=str)
def test_everyone_gets_what_they_get_alone(untrained, tmp_path, options):
    untrained.record("newcomer", 4)
    file = tmp_path / "all.jsonl"
    assert untrained.recommend_all(file, model="next-item", **options).users == 41
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for user in (*range(40), "newcomer"):
        alone = untrained.recommend(user=user, model="next-item", **options)
        found = [row for row in rows if row["user"] == user]
        assert [row["id"] for row in found] == [hit.id for hit in alone]
        scores = [hit.score for hit in alone]
        assert [row["score"] for row in found] == pytest.approx(scores, abs=1e-4)


def test_info_says_that_the_model_is_there(untrained, qkv):
    assert untrained.info()["next_item"]["n_layers"] == 2
    shown = qkv("-w", untrained.workspace.path, "info").stdout
    assert "next item" in shown
    assert "n_layers 2" in shown


def test_what_cannot_be_asked_is_said(untrained, tmp_path_factory):
    with pytest.raises(QkvError, match="did you mean next-item"):
        untrained.recommend(user=3, model="next-itm")
    with pytest.raises(QkvError, match="leave `recent` out"):
        untrained.recommend(user=3, model="next-item", recent=2)
    path = tmp_path_factory.mktemp("plain")
    with qkv.build(path, items=ITEMS, interactions=LOG, encoder="corpus") as engine:
        with pytest.raises(WorkspaceError, match="build with `next_item`"):
            engine.recommend(user=3, model="next-item")
        with pytest.raises(WorkspaceError, match="build with `next_item`"):
            engine.recommend_all(path / "all.csv", model="next-item")
    assert not list(path.glob("all.csv*"))
    with pytest.raises(QkvError, match="interactions"):
        qkv.build(path, items=ITEMS, encoder="corpus", next_item=True)


@pytest.mark.parametrize("interactions", [("--interactions", "log.csv"), ()])
def test_a_build_without_it_says_that_the_model_is_gone(untrained, qkv, tmp_path, interactions):
    ITEMS.to_csv("items.csv", index=False)
    LOG.to_csv("log.csv", index=False)
    build = ("-w", tmp_path, "build", "--items", "items.csv", *interactions, "--encoder", "corpus")
    gone = "The previous build had a next-item model; build --next-item trains it again."
    assert gone in qkv(*build).stderr.splitlines()
    assert gone not in qkv(*build).stderr


@pytest.mark.skipif(find_spec("torch") is None, reason="training needs the extra [train]")
def test_trained_by_the_command_it_knows_what_comes_next(qkv, tmp_path):
    ITEMS.to_csv("items.csv", index=False)
    LOG.to_csv("log.csv", index=False)
    files = ("--items", "items.csv", "--interactions", "log.csv", "--encoder", "corpus")
    assert qkv("-w", "ws", "build", *files, "--next-item").code == 0
    ask = ("-w", "ws", "recommend", "--model", "next-item", "-k", "1", "--format", "json")
    (hit,) = qkv(*ask, "--user", "3").json()
    assert hit["id"] == 11

"""A build of a workspace that was tuned uses what was found, says so, and goes back when told."""

from qkvsearch.engine import Engine
from qkvsearch.index.learn import learn_preferences
from qkvsearch.storage import Workspace

SETTINGS = {"n_components": 8, "max_iter": 5, "alpha0": 0.3, "reg": 0.02, "nu": 0.9}


def components(path):
    with Engine(path) as engine:
        return engine.models.implicit.item_embeddings.shape[1], engine.snapshot.facts.get("tuned")


def test_later_builds_use_the_settings_until_they_are_reset(qkv):
    build = ("-w", "ws", "build", "sample:movies", "--encoder", "corpus")
    assert "tune" not in qkv(*build).stderr
    learn_preferences(Workspace("ws"), {"settings": SETTINGS})
    assert "Preferences: with the settings of tune" in qkv(*build).stderr
    assert components("ws") == (8, {"settings": SETTINGS})
    assert qkv("-w", "ws", "tune", "--reset").code == 0
    assert "tune" not in qkv(*build).stderr
    assert components("ws") == (64, None)


def test_info_says_with_which_settings(qkv):
    assert qkv("-w", "ws", "build", "sample:movies", "--encoder", "corpus").code == 0
    assert "tuned" not in qkv("-w", "ws", "info").stdout
    found = {"protocol": "time", "seed": 0, "settings": SETTINGS}
    learn_preferences(Workspace("ws"), found)
    (facts,) = qkv("-w", "ws", "info", "--format", "json").json()
    assert facts["tuned"] == found
    shown = " ".join(qkv("-w", "ws", "info").stdout.split())
    assert "tuned protocol time, seed 0, settings (n_components 8, max_iter 5, alpha0 0.3," in shown


def test_a_build_without_interactions_is_not_tuned(qkv, shop_items):
    assert qkv("-w", "ws", "build", "sample:movies", "--encoder", "corpus").code == 0
    learn_preferences(Workspace("ws"), {"settings": SETTINGS})
    shop_items.to_csv("items.csv", index=False)
    assert qkv("-w", "ws", "build", "items.csv").code == 0
    with Engine("ws") as engine:
        assert "tuned" not in engine.snapshot.facts

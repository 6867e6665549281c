"""A build of a workspace that was tuned uses what was found, says so, and goes back when told."""

import pytest

from qkvsearch.engine import Engine
from qkvsearch.learn.learn_again import learn_preferences
from qkvsearch.store import Workspace

SETTINGS = {"n_components": 8, "max_iter": 5, "alpha0": 0.3, "reg": 0.02, "nu": 0.9}
FOUND = {"protocol": "time", "seed": 0, "settings": SETTINGS}


def components(path):
    with Engine(path) as engine:
        return engine.models.implicit.item_embeddings.shape[1], engine.snapshot.facts.get("tuned")


@pytest.mark.slow
def test_later_builds_use_the_settings_until_they_are_reset(qkv, films_path):
    build = ("-w", films_path, "build", "sample:movies", "--encoder", "corpus")
    assert "tuned" not in qkv("-w", films_path, "info").stdout
    learn_preferences(Workspace(films_path), FOUND)
    shown = " ".join(qkv("-w", films_path, "info").stdout.split())
    assert "tuned protocol time, seed 0, settings (n_components 8, max_iter 5, alpha0 0.3," in shown
    assert "Preferences: with the settings of tune" in qkv(*build).stderr
    assert components(films_path) == (8, FOUND)
    assert qkv("-w", films_path, "tune", "--reset").code == 0
    assert "tune" not in qkv(*build).stderr
    assert components(films_path) == (64, None)


def test_a_build_without_interactions_is_not_tuned(qkv, films_path, shop_items):
    learn_preferences(Workspace(films_path), FOUND)
    shop_items.to_csv("items.csv", index=False)
    assert qkv("-w", films_path, "build", "items.csv").code == 0
    with Engine(films_path) as engine:
        assert "tuned" not in engine.snapshot.facts

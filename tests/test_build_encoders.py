"""Builds with pretrained encoders: searched, explained exactly, and missed clearly when gone."""

from __future__ import annotations

import shutil

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.embeddings.static import find_package
from qkvsearch.errors import QkvError

ITEMS = pd.DataFrame(
    {
        "id": range(6),
        "title": ["deep sea", "red season", "the sea", "", "deep red", "colder season"],
        "tags": ["sea", "season red", "deep deep sea", "red", "", "cold"],
    }
)


def check(engine, assert_adds_up, head):
    assert list(engine.models.head_weights)[-1] == head
    assert sum(engine.models.head_weights.values()) == pytest.approx(1)
    ranking = engine.search("deep red sea", k=6)
    assert set(ranking[0].heads) == set(engine.models.head_weights)
    for i, hit in enumerate(ranking):
        assert_adds_up([part.value for part in ranking.explain(i)], hit.score)
    assert len(engine.search("deep sea", heads=[head], k=6)) == 6
    assert engine.similar(0, k=2)


def test_a_models_folder_from_anywhere(tiny_bert, tmp_path, monkeypatch, assert_adds_up):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_bert, "model")
    with qkv.build("ws", items=ITEMS, encoder="model"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "ws"]
    monkeypatch.chdir("/")
    with qkv.open(tmp_path / "ws") as engine:
        check(engine, assert_adds_up, "transformer")
        assert engine.attend("deep sea", layer=1, head=2).weights.shape == (4, 4)


def test_a_model_that_is_gone_is_named_and_words_still_search(tiny_bert, tmp_path):
    model = shutil.copytree(tiny_bert, tmp_path / "model")
    with qkv.build(tmp_path / "ws", items=ITEMS, encoder=str(model)) as engine:
        shutil.rmtree(model)
        assert engine.search("deep sea", heads=["lexical", "lsa"])
        with pytest.raises(QkvError, match="model"):
            engine.search("deep sea")


@pytest.mark.skipif(find_package() is None, reason="needs wordllama")
def test_the_static_table(tmp_path, assert_adds_up):
    with qkv.build(tmp_path / "ws", items=ITEMS, encoder="static") as engine:
        check(engine, assert_adds_up, "static")


def test_an_encoder_that_is_not_there_is_named_before_any_work(tmp_path):
    with pytest.raises(QkvError, match="no encoder 'statik'; did you mean static"):
        qkv.build(tmp_path / "ws", items=ITEMS, encoder="statik")
    assert not (tmp_path / "ws").exists()


def test_a_model_that_is_not_installed_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("QKVSEARCH_MODELS", str(tmp_path / "none"))
    with pytest.raises(QkvError, match="model fetch minilm"):
        qkv.build(tmp_path / "ws", items=ITEMS, encoder="minilm")

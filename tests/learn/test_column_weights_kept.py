"""A build's column weights: kept among its facts, and gone by in whatever makes keys later."""

from contextlib import closing

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch._utils.callbacks import silent
from qkvsearch.cli.build import column_weights_text
from qkvsearch.heads.dense import DenseComponent
from qkvsearch.heads.stored_models import StoredModels
from qkvsearch.learn.merge import merged_contents
from qkvsearch.store import Workspace
from qkvsearch.text.text_encoder import item_keys

TOPICS = ["sea water fish boat", "car road wheel engine", "bread flour oven yeast"]
HEADS = ("lsa", "contrastive")
WEIGHTS = {"title": 0.2, "body": 0.8}


def frame(n=24, first=0):
    rng = np.random.default_rng(first)
    rows = []
    for i in range(first, first + n):
        words = TOPICS[i % 3].split()
        body = " ".join(rng.choice(words, 60))
        rows.append({"id": f"i{i:03}", "title": " ".join(rng.choice(words, 3)), "body": body})
    return pd.DataFrame(rows)


@pytest.fixture
def path(tmp_path):
    columns = qkv.Columns(text=("title", "body"))
    qkv.build(tmp_path / "ws", items=frame(), columns=columns, encoder="corpus").close()
    return tmp_path / "ws"


def set_weights(path, weights):
    """The current build's facts with other column weights, or without any."""
    workspace = Workspace(path)
    with workspace.writing("test"), closing(workspace.open()) as build:
        models = StoredModels(build)
        heads = [DenseComponent(name) for name in HEADS]
        contents = merged_contents(build, silent, but=heads)
        contents.facts.pop("column_weights", None)
        if weights is not None:
            contents.facts["column_weights"] = dict.fromkeys(HEADS, weights)
        fields = [frame()["title"].tolist(), frame()["body"].tolist()]
        for part in heads:
            encoder = models.encoder(part.group)
            shares = None if weights is None else list(weights.values())
            part.store(contents, encoder, item_keys(encoder.encode_many, fields, shares))
        workspace.publish(contents, "test")


def expected(engine, head, items, weights):
    encode = engine.models.encoder(head).encode_many
    return item_keys(encode, [items["title"].tolist(), items["body"].tolist()], weights)


def test_a_build_keeps_the_weights_of_every_head(path):
    with qkv.open(path) as engine:
        weights = engine.info()["column_weights"]
        assert list(weights) == list(HEADS)
        for head in HEADS:
            assert list(weights[head]) == ["title", "body"]
            assert weights[head]["body"] == pytest.approx(60**0.5 / (60**0.5 + 16**0.5))
            keys = expected(engine, head, frame(), list(weights[head].values()))
            np.testing.assert_allclose(engine.models.dense_keys(head).vectors, keys, atol=1e-6)


@pytest.mark.parametrize("weights", [{"title": 0, "body": 1}, None], ids=["uneven", "even"])
def test_what_joins_gets_keys_as_what_was_there(path, weights):
    set_weights(path, weights)
    items = pd.concat([frame(), frame(5, 100)], ignore_index=True)
    shares = None if weights is None else list(weights.values())
    with qkv.open(path) as engine:
        engine.add(frame(5, 100))
        for after in ("add", "compact"):
            for head in HEADS:
                found = engine.models.dense_keys(head).vectors
                np.testing.assert_allclose(
                    found, expected(engine, head, items, shares), atol=1e-6, err_msg=after
                )
            engine.compact()
        assert engine.info().get("column_weights") == (weights and dict.fromkeys(HEADS, weights))


def test_parts_add_up_by_the_weights(path):
    set_weights(path, WEIGHTS)
    with qkv.open(path) as engine:
        ranking = engine.search("boat on the water", k=5)
        for i, hit in enumerate(ranking):
            total = sum(part.value for part in ranking.explain(i))
            assert total == pytest.approx(hit.score, abs=1e-5)


def test_repaired_keys_go_by_the_weights(path):
    set_weights(path, WEIGHTS)
    current = qkv.open(path).snapshot.segments[-1].folder
    keys = current / "lsa.keys.npy"
    keys.write_bytes(keys.read_bytes()[:-8] + bytes(8))
    assert qkv.repair(path).rebuilt
    with qkv.open(path) as engine:
        found = engine.models.dense_keys("lsa").vectors
        np.testing.assert_allclose(found, expected(engine, "lsa", frame(), [0.2, 0.8]), atol=1e-6)


def test_only_weights_that_differ_are_said():
    even = {"lsa": {"title": 0.52, "tags": 0.48}}
    assert column_weights_text(even) == ""
    assert column_weights_text({**even, "static": WEIGHTS}) == "in static title 0.20, body 0.80"

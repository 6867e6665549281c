"""Texts to embeddings, and embeddings to files that other programs read, with the owner's ids."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from qkvsearch.engine import Engine
from qkvsearch.engine import export_embeddings as exports
from qkvsearch.errors import QkvError


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("qkvsearch.heads.histories.BLOCK", 2)


def read_safetensors(path):
    safetensors = pytest.importorskip("safetensors")
    with safetensors.safe_open(path, "numpy") as tensors:
        said = tensors.metadata()
        return json.loads(said["ids"]), tensors.get_tensor("embeddings")


def read_npz(path):
    with np.load(path, allow_pickle=False) as arrays:
        return arrays["ids"].tolist(), arrays["embeddings"]


def read_parquet(path):
    frame = pd.read_parquet(path)
    return frame["id"].tolist(), np.stack(frame["embedding"])


READERS = {"safetensors": read_safetensors, "npz": read_npz, "parquet": read_parquet}


# --- texts ---


def test_a_text_is_encoded_as_a_query_is(shop):
    found = shop.encode(["red apple", "xyzzy", "red apple hammer"])
    assert (found.dtype, found.shape[0]) == (np.float32, 3)
    encoder = shop.models.encoder(shop.models.main_head)
    np.testing.assert_allclose(found[0], encoder.encode("red apple").total, atol=1e-6)
    assert not found[1].any()
    np.testing.assert_allclose(np.linalg.norm(found[[0, 2]], axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(shop.encode("red apple"), found[:1])


def test_every_dense_head_encodes_and_others_are_refused(shop):
    by_head = [shop.encode("red apple", head=name) for name in ("lsa", "contrastive")]
    assert not np.array_equal(*by_head)
    for wrong in ("lexical", "lsaa", "collaborative"):
        with pytest.raises(QkvError, match="`head`: no head"):
            shop.encode("red apple", head=wrong)


@pytest.mark.parametrize("form", ["json", "csv"])
def test_the_command_gives_every_digit_and_says_what_was_not_read(qkv, shop_path, shop, form):
    answer = qkv(
        "-w", shop_path, "encode", "red apple", "-", "--format", form, stdin="the ladder\n"
    )
    rows = answer.json() if form == "json" else list(csv.DictReader(io.StringIO(answer.stdout)))  # fmt: skip  # noqa: E501
    assert [row["text"] for row in rows] == ["red apple", "the ladder"]
    assert {row["head"] for row in rows} == {shop.models.main_head}
    values = [row["embedding"] if form == "json" else json.loads(row["embedding"]) for row in rows]
    np.testing.assert_array_equal(np.float32(values), shop.encode(["red apple", "the ladder"]))
    unread = rows[1]["unread"]
    assert unread == (["the"] if form == "json" else "the")
    assert not rows[0].get("unread")


def test_nothing_known_is_said(qkv, shop_path):
    answer = qkv("-w", shop_path, "encode", "xyzzy", "--format", "json")
    assert "knows no word of 1 text: zeros" in answer.stderr
    assert not any(answer.json()[0]["embedding"])


def test_an_encoder_of_a_folder_needs_no_workspace(qkv, tiny_bert):
    long = "deep sea " * 12
    answer = qkv("encode", long, "--encoder", tiny_bert, "--format", "json")
    (row,) = answer.json()
    assert row["unread"]  # it reads 12 tokens
    assert np.linalg.norm(row["embedding"]) == pytest.approx(1, abs=1e-6)
    both = qkv("encode", "x", "--encoder", tiny_bert, "--head", "lsa")
    assert both.code == 2
    assert "did you mean static" in qkv("encode", "x", "--encoder", "statc").stderr


def test_an_empty_stdin_is_an_error(qkv, shop_path):
    answer = qkv("-w", shop_path, "encode", "-", stdin="\n  \n")
    assert (answer.code, answer.stdout) == (1, "")
    assert "one per line" in answer.stderr


# --- files ---


@pytest.mark.parametrize("form", READERS)
@pytest.mark.parametrize("head", [None, "lsa", "collaborative"])
def test_items_come_back_with_their_ids(shop, small_blocks, tmp_path, form, head):
    path = tmp_path / f"items.{form}"
    done = shop.export_embeddings(path, head=head)
    ids, found = READERS[form](path)
    assert ids == [1, 2, 3, 4, 5, 6, 7, 8, 9, 30]
    models = shop.models
    expected = (
        models.implicit.item_embeddings
        if head == "collaborative"
        else models.dense_keys(head or models.main_head).vectors
    )
    np.testing.assert_array_equal(found, np.float32(expected))
    assert (done.rows, done.components) == found.shape
    assert done.head == (head or models.main_head)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("form", READERS)
def test_users_are_solved_as_they_are_asked(shop, small_blocks, tmp_path, form):
    done = shop.export_embeddings(tmp_path / f"users.{form}", of="users")
    ids, found = READERS[form](tmp_path / f"users.{form}")
    assert ids == [101, 102, 103, 201, 202, 203, 300]
    for user, vector in zip(ids, found, strict=True):
        history = shop.current_build.histories.of(user).liked
        solved = shop.models.implicit.fold_in(history.positions, history.confidences)
        np.testing.assert_allclose(vector, solved, atol=1e-5)
    assert done.notes == ["1 of 7 users has only zeros: nothing is known about it."]


@pytest.mark.parametrize("form", READERS)
def test_ids_that_are_text_stay_text(videos, tmp_path, form):
    videos.export_embeddings(tmp_path / f"v.{form}")
    assert READERS[form](tmp_path / f"v.{form}")[0] == list(videos.items.ids)


def test_a_user_recorded_by_a_name_makes_all_ids_text(shop_copy, tmp_path):
    with Engine(shop_copy) as engine:
        engine.record("ann", 1)
        engine.export_embeddings(tmp_path / "users.npz", of="users")
    ids, found = read_npz(tmp_path / "users.npz")
    assert ids == ["101", "102", "103", "201", "202", "203", "300", "ann"]
    assert found[-1].any()


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("x.npy", {}, "use .npz"),
        ("x.csv", {}, "safetensors"),
        ("x.npz", {"of": "user"}, "did you mean users"),
        ("x.npz", {"of": "users", "head": "lsa"}, "only one by collaborative"),
        ("x.npz", {"head": "lexical"}, "no head 'lexical'"),
    ],
)
def test_what_cannot_be_written_is_said_and_nothing_is(shop, tmp_path, name, options, said):
    with pytest.raises(QkvError, match=said):
        shop.export_embeddings(tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_fails_half_way_leaves_the_former_one(shop, tmp_path, monkeypatch):
    path = tmp_path / "users.npz"
    shop.export_embeddings(path, of="users")
    before = path.read_bytes()

    def fails(*_):
        raise QkvError("half way")

    monkeypatch.setattr("qkvsearch.rank.recommender.Recommender.embeddings", fails)
    for form in READERS:
        with pytest.raises(QkvError, match="half way"):
            shop.export_embeddings(path.with_suffix(f".{form}"), of="users")
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["users.npz"]


def test_without_interactions_there_are_no_users_to_export(things, tmp_path):
    for options in ({"of": "users"}, {"head": "collaborative"}):
        with pytest.raises(QkvError, match="no interactions"):
            things.export_embeddings(tmp_path / "x.npz", **options)
    assert list(tmp_path.iterdir()) == []


def test_parquet_without_its_library_is_refused_with_the_command(shop, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(QkvError, match=r"pip install -e '\.\[parquet\]'"):
        shop.export_embeddings(tmp_path / "x.parquet")


def test_more_ids_than_a_header_has_room_for(shop, tmp_path, monkeypatch):
    monkeypatch.setattr(exports, "MAX_HEADER", 64)
    with pytest.raises(QkvError, match=r"\.parquet or \.npz"):
        shop.export_embeddings(tmp_path / "x.safetensors")
    assert list(tmp_path.iterdir()) == []

"""`qkvsearch build` says what it took and why; samples follow what is installed."""

from __future__ import annotations

import json

import pytest

from qkvsearch.texts import choice

ITEMS = "id,title,tags\n1,deep sea,water\n2,red season,colour\n3,the sea,boat\n"


@pytest.fixture(autouse=True)
def files(tmp_path):
    (tmp_path / "items.csv").write_text(ITEMS)
    (tmp_path / "queries.tsv").write_text("q1\tdeep water\nq2\tred\n")
    (tmp_path / "qrels.tsv").write_text("q1\t1\nq2\t2\nq2\t77\n")


def test_the_encoder_and_why_are_said_and_shown(qkv, monkeypatch):
    monkeypatch.setattr(choice, "installed", lambda: ())
    answer = qkv("-w", "ws", "build", "items.csv")
    assert (answer.code, answer.stdout) == (0, "")
    assert "Encoder: corpus (by itself: no other is installed; pip install" in answer.stderr
    answer = qkv("-w", "ws", "build", "items.csv", "--encoder", "corpus")
    assert "Encoder: corpus (as asked for)." in answer.stderr
    assert qkv("-q", "-w", "ws", "build", "items.csv").stderr == ""


def test_a_text_that_was_cut_is_said(qkv, tmp_path, tiny_bert):
    (tmp_path / "long.csv").write_text(f"id,title\n1,{'deep ' * 30}\n2,sea\n")
    answer = qkv("-w", "ws", "build", "long.csv", "--encoder", tiny_bert)
    assert "1 of 2 texts are longer than transformer's 12 tokens and were cut." in answer.stderr


def test_judgements_are_learned_from_and_what_they_lack_is_said(qkv):
    answer = qkv(
        "-w", "ws", "build", "items.csv", "--queries", "queries.tsv", "--qrels", "qrels.tsv"
    )
    assert answer.code == 0
    said = "learned from 2 judged queries; 1 judged item is not in the catalog: 77."
    assert said in answer.stderr


@pytest.mark.parametrize("given", ["queries", "qrels"])
def test_queries_without_judgements_are_wrong_usage(qkv, tmp_path, given):
    answer = qkv("-w", "ws", "build", "items.csv", f"--{given}", f"{given}.tsv")
    assert (answer.code, answer.stdout) == (2, "")
    assert "--queries asks and --qrels answers: give both" in answer.stderr
    assert not (tmp_path / "ws").exists()


def test_a_sample_is_built_anew_where_another_encoder_is_installed(
    qkv, tmp_path, monkeypatch, small_sample
):
    for name in ("HOME", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setattr(choice, "installed", lambda: ())
    question = ["search", "red apple", "--format", "json"]
    before = json.loads(qkv(*question).stdout)
    assert set(before[0]["heads"]) == {"lexical", "lsa", "contrastive"}
    # As if a package were there that reads nothing better: a build of its own all the same.
    monkeypatch.setattr(choice, "installed", lambda: ("other",))
    assert json.loads(qkv(*question).stdout) == before
    folders = sorted(path.name for path in (tmp_path / "home").rglob("videos-*"))
    assert [name.rpartition("-")[2] for name in folders] == ["corpus", "other"]

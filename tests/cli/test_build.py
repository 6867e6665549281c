"""`qkvsearch build` says what it took and why; samples follow what is installed."""

import pytest

from qkvsearch.cli.build import memory_advice
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.text import encoders as choice

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
    assert (
        "Encoder: corpus (automatic: minilm for texts in English is not installed)" in answer.stderr
    )
    assert "qkvsearch model fetch minilm" in answer.stderr
    answer = qkv("-w", "ws", "build", "items.csv", "--encoder", "corpus")
    assert "Encoder: corpus (your choice)." in answer.stderr
    assert qkv("-q", "-w", "ws", "build", "items.csv").stderr == ""


def test_a_text_that_was_cut_is_said(qkv, tmp_path, tiny_bert):
    (tmp_path / "long.csv").write_text(f"id,title\n1,{'deep ' * 30}\n2,sea\n")
    answer = qkv("-w", "ws", "build", "long.csv", "--encoder", tiny_bert)
    assert "1 of 2 texts is longer than transformer's 12 tokens and was cut." in answer.stderr


def test_a_sample_is_built_anew_where_another_encoder_is_installed(
    qkv, tmp_path, monkeypatch, small_sample
):
    for name in ("HOME", "XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setattr(choice, "installed", lambda: ())
    question = ["-w", "sample:videos", "search", "red apple", "--format", "json"]
    before = qkv(*question).json()
    assert set(before[0]["heads"]) >= {"lexical", "lsa", "contrastive"}
    # As if a package were there that reads nothing better: a build of its own all the same.
    monkeypatch.setattr(choice, "installed", lambda: ("other",))
    assert qkv(*question).json() == before
    folders = sorted(path.name for path in (tmp_path / "home").rglob("videos-*"))
    assert [name.rpartition("-")[2] for name in folders] == ["corpus", "other"]


def test_a_plan_checks_everything_says_it_and_writes_nothing(qkv, tmp_path):
    (tmp_path / "log.csv").write_text("customer_email,SKU,note\na@x.org,1,x\nb@x.org,9,y\n")
    answer = qkv("-w", "ws", "build", "items.csv", "--interactions", "log.csv", "--plan")
    assert (answer.code, answer.stdout) == (0, "")
    assert "user = customer_email, item = SKU (by name); unused: note" in answer.stderr
    assert "Warning: log.csv: 1 of 2 rows were skipped: 1 with an item that" in answer.stderr
    assert "Memory: about 0.4 GB at most" in answer.stderr
    assert "Nothing was built; ws would have 3 items, 1 user, 1 interaction." in answer.stderr
    assert not (tmp_path / "ws").exists()
    answer = qkv(
        "-w", "ws", "build", "items.csv", "--interactions", "log.csv", "--plan", "--strict"
    )
    assert (answer.code, answer.stdout) == (1, "")
    assert "--strict" in answer.stderr


def test_a_plan_names_the_option_that_helps_where_memory_is_too_small(tmp_path):
    items, log = str(tmp_path / "items.csv"), str(tmp_path / "log.csv")
    (tmp_path / "log.csv").write_text("user,item\n" + "".join(f"{n},1\n" for n in range(100)))
    for interactions, option in ((None, "--keys milvus:URI"), (log, "--engine spark")):
        dataset = read_dataset(items, interactions)
        assert memory_advice(dataset, None) == "Memory: about 0.4 GB at most."
        assert memory_advice(dataset, 1e9).endswith("this machine has 1.0 GB.")
        assert f"use {option}" in memory_advice(dataset, 0.4e9)


def test_warnings_stay_with_the_build(qkv, tmp_path):
    (tmp_path / "log.csv").write_text("user,item\nann,1\nbob,9\n")
    qkv("-w", "ws", "build", "items.csv", "--interactions", "log.csv", "--encoder", "corpus")
    rows = qkv("-w", "ws", "info", "--format", "json").json()[0]["rows"]
    assert any(line.startswith("Warning: log.csv: 1 of 2 rows were skipped") for line in rows)


def test_standard_input_is_built_from(qkv):
    text = 'SKU;Name\n1;"red\ntent"\n2;"blue; old"\n'
    answer = qkv("-w", "ws", "build", "--items", "-", "--encoder", "corpus", stdin=text)
    assert answer.code == 0
    assert "standard input: 2 rows read: 2 kept" in answer.stderr


def test_the_language_and_why_are_said_and_shown(qkv, tmp_path):
    (tmp_path / "laden.csv").write_text(
        "id,title\n1,Jacke für den Regen\n2,Hose mit Taschen und Gürtel\n3,Schuhe aus Leder\n"
    )
    answer = qkv("-w", "ws", "build", "laden.csv")
    assert "Language: German (guessed from 3 texts)." in answer.stderr
    (info,) = qkv("-w", "ws", "info", "--format", "json").json()
    assert (info["language"], info["language_chosen"]) == ("german", "guessed from 3 texts")
    answer = qkv("-w", "ws", "build", "laden.csv", "--language", "nl")
    assert "Language: Dutch (your choice)." in answer.stderr
    answer = qkv("-w", "ws", "build", "laden.csv", "--language", "klingon")
    assert answer.code != 0
    assert "no --language 'klingon'" in answer.stderr


def test_a_delimiter_that_is_told_is_that_of_every_file(qkv, tmp_path):
    for name, text in {
        "items.txt": "id/title\n1/red, apple\n2/blue, pear\n",
        "log.txt": "user/item\nann/1\nbob/2\n",
        "more.txt": "id/title\n3/green, plum\n",
        "new.txt": "user/item\nann/3\n",
    }.items():
        (tmp_path / name).write_text(text)
    told, files = ("--delimiter", "/"), ("--items", "items.txt", "--interactions", "log.txt")
    for command in (
        ("build", *files, "--encoder", "corpus"), ("add", "more.txt"), ("record", "new.txt"),
        ("add", "--interactions", "new.txt", "--again"),
    ):  # fmt: skip
        answer = qkv("-w", "ws", *command, *told)
        assert answer.code == 0, answer.stderr
    titles = {row["title"] for row in qkv("-w", "ws", "items", "--format", "json").json()}
    assert titles == {"red, apple", "blue, pear", "green, plum"}
    assert qkv("-w", "ws", "record", "ann", "1", *told).code == 2

"""`attend` with a transformer: maps that fit the window, heads, mistakes."""

import csv
import io
import re

import pytest

from qkvsearch.cli.heatmap import CELL, GAP
from qkvsearch.text.encoders import pretrained

TEXT = "deep season didn't redder sea"
TOKENS = ["[CLS]", "deep", "sea", "##son", "didn", "'", "t", "red", "##der", "sea", "[SEP]"]
FIELDS = [
    "query_position", "query", "key_position", "key", "weight", "visible", "layer", "head",
]  # fmt: skip


@pytest.fixture
def attend(qkv, tiny_bert):
    def run(*args, **options):
        return qkv("attend", "--encoder", tiny_bert, *args, **options)

    return run


def test_json_holds_the_models_weights_and_says_which_head(attend, tiny_bert):
    rows = attend(TEXT, "--layer", 2, "--head", 3, "--format", "json").json()
    weights = pretrained(str(tiny_bert)).attend(TEXT).weights[1, 2]
    assert [row["weight"] for row in rows] == weights.ravel().tolist()
    assert list(rows[0]) == FIELDS
    assert {(row["layer"], row["head"]) for row in rows} == {(1, 2)}
    mean = attend(TEXT, "--layer", 1, "--format", "json").json()
    assert {(row["layer"], row["head"]) for row in mean} == {(0, None)}


def test_a_map_has_rows_of_100_percent_and_so_have_sentences(attend, monkeypatch):
    width = len("[CLS]") + len(TOKENS) * (CELL + GAP)
    monkeypatch.setenv("COLUMNS", str(width))
    lines = attend(TEXT, "--layer", 2, "--head", 3).stdout.splitlines()
    assert lines[0].split() == TOKENS
    for token, line in zip(TOKENS, lines[1:], strict=False):
        percents = [int(x) for x in re.findall(r"(\d+)%", line.split(token, 1)[1])]
        assert len(percents) == len(TOKENS)
        assert abs(sum(percents) - 100) <= len(TOKENS) / 2
    assert lines[-1] == "layer 2, head 3: row attends to column; rows add up to 100 %"
    monkeypatch.setenv("COLUMNS", str(width - 1))
    lines = attend(TEXT, "--layer", 2, "--head", 3).stdout.splitlines()
    assert max(map(len, lines)) < width
    sentences = [line for line in lines if " → " in line]
    assert [line.split()[0] for line in sentences] == TOKENS
    words = " ".join(lines[: lines.index(sentences[1])]).split()[2:]
    assert words[::2] == TOKENS
    assert abs(sum(int(word.removesuffix("%")) for word in words[1::2]) - 100) <= len(TOKENS) / 2


def test_without_layers_a_head_cannot_be_chosen(qkv, videos_path):
    answer = qkv("-q", "-w", videos_path, "attend", "guitar bass", "--head", 1)
    assert (answer.code, answer.stdout) == (1, "")
    assert "the encoder here is corpus" in answer.stderr
    assert "--encoder minilm" in answer.stderr


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        (("--layer", 3), 1, "no layer 3: there are layers 1 to 2"),
        (("--head", "most"), 2, "'most' is not a valid integer"),
        (("--encoder", "minlm"), 1, "did you mean minilm"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_mistakes_are_told_in_a_sentence(qkv, tiny_bert, asked, code, said):
    encoder = () if "--encoder" in asked else ("--encoder", tiny_bert)
    answer = qkv("attend", TEXT, *encoder, *asked)
    assert (answer.code, answer.stdout) == (code, "")
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_long_text_is_cut_and_that_is_said(attend):
    answer = attend("deep " * 12 + "water")
    assert answer.code == 0
    assert "Left out, beyond the model's limit: " in answer.stderr
    assert "water" in answer.stderr


def test_nothing_to_see_is_said_and_still_a_listing(attend):
    answer = attend(" ", "--format", "csv")
    assert answer.stdout.splitlines() == [",".join(FIELDS)]
    assert "Nothing to attend to" in answer.stderr
    assert attend(" ").stdout == ""
    rows = list(csv.DictReader(io.StringIO(attend("-", "--format", "csv", stdin="sea").stdout)))
    assert [row["key"] for row in rows[:3]] == ["[CLS]", "sea", "[SEP]"]


def test_rows_that_may_attend_to_nothing_are_not_said_to_add_up(qkv, videos_path):
    words = ("-w", videos_path, "attend", "river bank", "--hide", "river")
    assert "add up to 100 %" in " ".join(qkv(*words).stdout.split())
    answer = qkv(*words, "--hide", "bank")
    assert answer.code == 0
    assert "add up" not in answer.stdout
    assert "100%" not in answer.stdout

"""Help of the group; what the help of every command has is in tests/contract."""

import re
import tomllib
from pathlib import Path

import pytest

from qkvsearch.cli import COMMANDS, GROUPS, downloads
from qkvsearch.text import encoders


def test_commands_are_listed_by_task_with_a_whole_one_line_summary_of_each(qkv):
    answer = qkv("--help").stdout
    assert "softmax" not in answer.split("Options:")[0]
    lines = re.findall(r"^  ([a-z]+ +[A-Z].*[^.]\.)$", answer.split("-h, --help")[1], re.MULTILINE)
    assert [line.split()[0] for line in lines] == list(COMMANDS)
    headings = re.findall(r"^(\w[\w ]+):$", answer, re.MULTILINE)
    assert headings == ["Options", *GROUPS]


def test_rare_options_come_last(qkv):
    options, advanced = qkv("search", "--help").stdout.split("Advanced:")
    assert "--where EXPR" in options
    assert "--temperature" in advanced


def test_no_arguments_show_the_help_as_wrong_usage(qkv):
    answer = qkv()
    assert answer.code == 2
    assert "Your data:" in answer.stdout + answer.stderr


def test_doctor_says_what_is_missing_and_how_to_add_it(qkv, monkeypatch):
    monkeypatch.setattr(downloads, "find_spec", lambda name: None if name == "openpyxl" else name)
    rows = {row["name"]: row for row in qkv("doctor", "--format", "json").json()}
    assert (rows["xlsx"]["installed"], rows["web"]["installed"]) == (False, True)
    assert "[xlsx]" in qkv("doctor").stdout
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    every = ",".join(sorted(name for name in rows if not name.startswith("model ")))
    assert project["optional-dependencies"]["all"] == [f"qkvsearch[{every}]"]


@pytest.mark.parametrize("name", ["info", "doctor"])
def test_the_command_that_would_find_more_in_a_workspace(qkv, tmp_path, monkeypatch, name):
    titles = ["河流为什么会弯曲？", "鲸鱼怎么睡觉", "红烧肉的做法"]
    tables = {
        "zh": titles,
        "en": ["Why do rivers bend on their way?", "How do whales sleep at sea?"],
    }
    for language, texts in tables.items():
        rows = "".join(f"{i},{text}\n" for i, text in enumerate(texts))
        (tmp_path / f"{language}.csv").write_text(f"id,title\n{rows}", encoding="utf-8")
    monkeypatch.setattr(encoders, "installed", lambda: ())
    built = qkv("-w", "zh", "build", "--items", "zh.csv")
    fetch = "model fetch e5"
    assert "Chinese" in built.stderr
    assert fetch in " ".join(built.stderr.split())
    told = qkv("-w", "zh", name)
    assert fetch in " ".join((told.stdout + told.stderr).split())
    # An encoder that was asked for is the owner's choice.
    qkv("-w", "en", "build", "--items", "en.csv", "--encoder", "corpus")
    told = qkv("-w", "en", name, "--format", "json")
    assert "fetch minilm" not in told.stderr
    assert name == "doctor" or told.json()[0]["advice"] == ""


def test_version_is_shown(qkv):
    from qkvsearch import __version__

    assert qkv("--version").stdout == f"qkvsearch, version {__version__}\n"

"""Help of the group; what the help of every command has is in tests/contract."""

import re
import tomllib
from pathlib import Path

from qkvsearch.cli import COMMANDS, GROUPS, downloads


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
    every = ",".join(sorted({*rows} - {"model minilm"}))
    assert project["optional-dependencies"]["all"] == [f"qkvsearch[{every}]"]


def test_version_is_shown(qkv):
    from qkvsearch import __version__

    assert qkv("--version").stdout == f"qkvsearch, version {__version__}\n"

"""What every command promises, whichever there are: help with an example, results on stdout alone,
every format, a sentence and exit code 1 for what does not exist, and never a traceback.
"""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from rich.cells import cell_len

from qkvsearch.cli import group
from qkvsearch.engine import Engine
from qkvsearch.store.search_log import SearchLog
from tests.terminal import Screen, on_a_terminal

CONTEXT = click.Context(group, info_name="qkvsearch")
ESCAPE = "\x1b["
# 30 to 37, 90 to 97 and 38;… are colours of letters, 40 and up of what is behind them.
COLOUR = re.compile(r"\x1b\[[\d;]*\b(3[0-8]|4[0-8]|9\d|10[0-7])\b[\d;]*m")


def leaves(command, *path):
    """Commands that do something, by their full names: `data list`, not `data`."""
    if not isinstance(command, click.Group):
        return {" ".join(path): command}
    found = {}
    if command.invoke_without_command:  # `tune` does something by itself, too
        found[" ".join(path)] = command
    for name in command.list_commands(CONTEXT):
        found |= leaves(command.get_command(CONTEXT, name), *path, name)
    return found


LEAVES = leaves(group)
# One call of each that succeeds on the shop, with what its results are; None where there are none.
CALLS = {
    "demo": ["demo"],
    "build": ["-w", "new", "build", "items.csv"],
    "add": ["-w", "recorded", "add", "more.csv"],
    "sync": ["-w", "recorded", "sync", "items.csv"],
    "remove": ["-w", "recorded", "remove", "--where", "made = 2009", "--dry-run"],
    "search": ["search", "red apple", "--explain"],
    "recommend": ["recommend", "--user", "101", *"--explain --damping 1 --diversity .3".split()],
    "similar": ["similar", "red apple", "--explain"],
    "mcp": ["mcp"],
    "items": ["items", "--where", "made > 2000", "--fields", "made"],
    "show": ["show", "red apple"],
    "users": ["users", "-k", "3"],
    "history": ["history", "101"],
    "record": ["-w", "recorded", "record", "101", "red apple", "4"],
    "records": ["-w", "recorded", "records", "-k", "5"],
    "rules add": ["-w", "ruled", "rules", "add", "--boost", "made > 2004: 0.5"],
    "rules list": ["-w", "ruled", "rules", "list"],
    "rules remove": ["-w", "ruled", "rules", "remove", "1"],
    "learn": ["-w", "recorded", "learn"],
    "attend": ["attend", "red apple hammer"],
    "encode": ["encode", "red apple", "xyzzy"],
    "export embeddings": ["export", "embeddings", "--to", "out.npz"],
    "teach": ["teach", "--list"],
    "evaluate search": ["evaluate", "search", "--queries", "q.tsv", "--qrels", "qrels.txt"],
    "evaluate recommend": ["evaluate", "recommend"],
    "compare": ["compare", "--heads", "semantic", "--queries", "q.tsv"],
    "tune": ["-w", "tuned", "tune", "--trials", "1"],
    "tune search": ["tune", "search"],
    "searches": ["-w", "recorded", "searches"],
    "info": ["info", "--verify"],
    "builds": ["-w", "changed", "builds"],
    "rollback": ["-w", "changed", "rollback"],
    "compact": ["-w", "changed", "compact"],
    "repair": ["-w", "recorded", "repair"],
    "forget": ["-w", "recorded", "forget", "300", "--dry-run"],
    "data list": ["data", "list"],
    "model list": ["model", "list"],
    "doctor": ["doctor"],
}
SILENT_ON_STDOUT = {
    "build", "add", "sync", "remove", "record", "learn", "rollback", "compact", "repair", "forget",
    "export embeddings", "mcp", "rules add", "rules remove",
}  # fmt: skip
LISTING = sorted(
    name for name, leaf in LEAVES.items() if "format_name" in {param.name for param in leaf.params}
)
# What each command says of a name that is nearly right.
NEAR = [
    (["recommend", "--user", "1011", "--strict-user"], "no user '1011'\n"),
    (["recommend", "--like", "claw hamer"], "did you mean claw hammer"),
    (["similar", "aple pie"], "did you mean apple pie"),
    (["record", "101", "gren apple"], "did you mean green apple"),
    (["records", "--user", "1011"], "no user '1011'\n"),
    (["items", "--where", "mde > 3"], "did you mean made"),
    (["items", "--fields", "mde"], "did you mean made"),
    (["show", "claw hamer"], "did you mean claw hammer"),
    (["history", "1011"], "no user '1011'\n"),
    (["search", "apple", "--fields", "mde"], "did you mean made"),
    (["search", "apple", "--sort", "mde"], "did you mean made"),
    (["search", "apple", "--heads", "lexcial"], "did you mean lexical"),
    (["search", "apple", "--where", "mde > 3"], "did you mean made"),
    (["evaluate", "search", "--queries", "q.tsv", "--qrels", "wrong.txt"], "did you mean q1"),
    (["compare", "--queries", "q.tsv", "--heads", "lexcial"], "did you mean lexical"),
    (["encode", "apple", "--head", "contrastiv"], "did you mean contrastive"),
    (["export", "embeddings", "--to", "x.npz", "--head", "contrastiv"], "mean contrastive"),
    (["data", "fetch", "ml-lm"], "did you mean ml-1m"),
    (["model", "fetch", "minlm"], "did you mean minilm"),
    (["forget", "1011", "--yes"], "no user '1011'\n"),
    (["build", "--items", "items.csv", "--id-column", "idd"], "did you mean id"),
    (["add", "more.csv", "--id-column", "idd"], "did you mean id"),
    (["sync", "more.csv", "--id-column", "idd"], "did you mean id"),
    (["remove", "claw hamer"], "did you mean claw hammer"),
    (["remove", "--where", "mde > 3"], "did you mean made"),
    (["rules", "add", "--pin", "nails=claw hamer"], "did you mean claw hammer"),
    (["rules", "add", "--boost", "mde > 3: 1"], "did you mean made"),
    (["teach", "mask"], "did you mean masks"),
]
# They ask no workspace anything.
ON_THEIR_OWN = {"demo", "build", "data list", "model list", "doctor", "teach"}


@pytest.fixture(scope="module")
def changed_path(shop_path, tmp_path_factory):
    """The shop after two changes, each of which can be undone."""
    path = shutil.copytree(shop_path, tmp_path_factory.mktemp("changed") / "ws")
    with Engine(path) as engine:
        engine.remove(1)
        engine.remove(2)
    return path


@pytest.fixture
def shopkeeper(
    surroundings, shop_path, changed_path, movies_path, shop_items, tmp_path, monkeypatch
):
    """A folder with the files that the calls name, and the shop as the workspace."""
    monkeypatch.setenv("QKVSEARCH_WORKSPACE", str(shop_path))
    shop_items.to_csv("items.csv", index=False)
    shop_items.tail(2).assign(id=[51, 52]).to_csv("more.csv", index=False)
    with Engine(shutil.copytree(shop_path, "recorded")) as engine:
        engine.record(101, 1)
    SearchLog(Path("recorded"), 30, print).add_search("v", "red apple", total=1, shown=[1])
    with Engine(shutil.copytree(shop_path, "ruled")) as engine:
        engine.add_rule(pin="nails", items=[4])
    shutil.copy("ruled/rules.json", "rules.json")
    shutil.copytree(changed_path, "changed")
    shutil.copytree(movies_path, "tuned")
    (tmp_path / "q.tsv").write_text("q1\tred apple\nq2\tladder\n", encoding="utf-8")
    (tmp_path / "qrels.txt").write_text("q1 0 1 1\nq2 0 7 2\n", encoding="utf-8")
    (tmp_path / "wrong.txt").write_text("q11 0 1 1\n", encoding="utf-8")


@pytest.mark.parametrize("name", LEAVES)
class TestEveryHelp:
    def test_it_is_shown_on_stdout_at_80_columns(self, qkv, name):
        answer = qkv(*name.split(), "--help")
        assert (answer.code, answer.stderr) == (0, "")
        assert answer.stdout.startswith(f"Usage: qkvsearch {name}")
        examples = answer.stdout.split("Example")[1].split("Options:")[0]
        assert max(map(len, answer.stdout.replace(examples, "").splitlines())) <= 80

    def test_it_has_an_example_of_the_command(self, name):
        assert re.search(rf"Examples?:\n +qkvsearch .*\b{name}\b", LEAVES[name].help)

    def test_every_option_has_a_help_text(self, name):
        options = [param for param in LEAVES[name].params if isinstance(param, click.Option)]
        assert [option.name for option in options if not option.help] == []


def with_slow_ones(names):
    """Tuning takes a second or two a call."""
    return [pytest.param(n, marks=pytest.mark.slow) if n.startswith("tune") else n for n in names]


@pytest.mark.parametrize("name", with_slow_ones(CALLS))
class TestEveryCall:
    def test_results_are_on_stdout_and_talk_on_stderr_but_if_quiet(self, qkv, shopkeeper, name):
        quiet = anew(qkv, name)("-q", *CALLS[name])
        loud = anew(qkv, name)(*CALLS[name])
        assert loud.code == 0, loud.stderr
        assert (loud.stdout == "") == (name in SILENT_ON_STDOUT)
        if name in SILENT_ON_STDOUT:
            assert loud.stderr
        assert (quiet.code, quiet.stderr) == (0, "")
        assert quiet.stdout == loud.stdout

    def test_wrong_usage_exits_2_without_a_result(self, qkv, shopkeeper, name):
        answer = qkv(*CALLS[name], "--nonsense")
        assert (answer.code, answer.stdout) == (2, "")
        assert "--nonsense" in answer.stderr


def anew(qkv, name):
    """Return what calls a command as if for the first time: `tune` and `rules` change what they
    begin with.
    """
    if name.startswith("rules"):
        shutil.copy("rules.json", "ruled/rules.json")
    if name == "tune":
        assert qkv("-w", "tuned", "tune", "--reset").code == 0
    return qkv


def rows_of_markdown(text):
    lines = [re.split(r"(?<!\\) \| ", line[2:-2]) for line in text.splitlines()]
    assert set(lines[1]) == {"---"}
    return [dict(zip(lines[0], line, strict=True)) for line in lines[2:]]


@pytest.mark.parametrize("name", with_slow_ones(LISTING))
class TestEveryListing:
    def test_every_format_parses_and_holds_as_many_rows(self, qkv, shopkeeper, name):
        texts = {form: qkv(*CALLS[name], "--format", form).stdout for form in FORMATS}
        found = json.loads(without_batches(texts["json"]))
        rows = [json.loads(line) for line in without_batches(texts["jsonl"]).splitlines()]
        if name.startswith(
            ("evaluate", "compare", "tune")
        ):  # one object; others have a row a system
            assert isinstance(found, dict)
        elif name in ("show", "sync"):
            assert [found] == rows
        else:
            assert found == rows
        assert rows
        for parsed in (
            list(csv.DictReader(io.StringIO(texts["csv"]))),
            rows_of_markdown(texts["markdown"]),
        ):
            assert len(parsed) == len(rows)
            assert set().union(*rows) <= set(parsed[0])

    def test_a_file_takes_the_result_and_stdout_none(self, qkv, shopkeeper, tmp_path, name):
        answer = anew(qkv, name)(*CALLS[name], "-o", "out.json")
        assert (answer.code, answer.stdout) == (0, "")
        expected = anew(qkv, name)(*CALLS[name], "--format", "json").stdout
        written = (tmp_path / "out.json").read_text("utf-8")
        assert without_batches(written) == without_batches(expected)


def without_batches(text):
    """JSON of `record`: each call is another batch."""
    return re.sub(r'("batch":) ?\d+', r"\1 0", text)


FORMATS = ("json", "jsonl", "csv", "markdown")


@pytest.mark.parametrize(("args", "said"), NEAR, ids=lambda value: " ".join(value)[:40])
def test_an_unknown_name_exits_1_with_near_matches(qkv, shopkeeper, args, said):
    answer = qkv(*args)
    assert (answer.code, answer.stdout) == (1, "")
    assert answer.stderr.startswith("Error: ")
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize("name", sorted(set(CALLS) - ON_THEIR_OWN))
def test_without_a_workspace_one_line_says_how_to_build_one_and_to_try_a_sample(
    qkv, shopkeeper, monkeypatch, name
):
    monkeypatch.delenv("QKVSEARCH_WORKSPACE")
    args = CALLS[name][2:] if CALLS[name][0] == "-w" else CALLS[name]
    for path in ("nowhere", *[".qkvsearch"] * (name != "attend")):
        answer = qkv(*["-w", path] * (path == "nowhere"), *args)
        assert (answer.code, answer.stdout) == (1, "")
        assert answer.stderr == (
            f"Error: {path}: no workspace here; build one with qkvsearch -w {path} build FILE, or "
            "try a sample with qkvsearch -w sample:videos\n"
        )
        assert not os.path.exists(path)


# Runs one call after the other, each after a line that tells them apart on both streams.
ONE_BY_ONE = """
import json, sys
from qkvsearch.cli import main

for number, args in enumerate(json.loads(sys.argv[1])):
    for stream in (sys.stdout, sys.stderr):
        print(f"== {number}", file=stream, flush=True)
    try:
        main(args)
    except SystemExit as stopped:
        print(f"== exit {stopped.code}", file=sys.stderr, flush=True)
"""


def parts_of(text):
    return re.split(r"^== \d+\r?\n", text, flags=re.MULTILINE)[1:]


@pytest.mark.slow
def test_every_command_works_through_a_pipe_without_escapes_at_80_columns(shopkeeper):
    done = subprocess.run(
        [sys.executable, "-c", ONE_BY_ONE, json.dumps(list(CALLS.values()))],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    results, talk = parts_of(done.stdout), parts_of(done.stderr)
    for name, result, said in zip(CALLS, results, talk, strict=True):
        assert said.endswith("== exit 0\n"), (name, said)
        assert "Traceback" not in said, name
        assert ESCAPE not in result + said, name
        assert (result == "") == (name in SILENT_ON_STDOUT), name
        assert [line for line in result.splitlines() if len(line) > 80] == [], name


# --- on a terminal ---

# What the names of the calls leave out: long texts, both kinds of reasons, several answers.
MORE_CALLS = {
    "build of a log": ["-w", "other", "build", "--items", "items.csv", "--interactions", "log.csv"],
    "build, planned": ["-v", "build", "--items", "items.csv", "--plan"],
    "search, full": ["search", "red apple", "--explain", "full", "-k", "2", "--weights"],
    "search, several": ["search", "--queries", "q.tsv", "--facets", "title"],
    "similar, full": ["similar", "red apple", "--explain", "full", "-k", "2"],
    "recommend, full": ["recommend", "--user", "101", "--explain", "full"],
    "teach a lesson": ["teach", "softmax", "--no-quiz"],
}
# Words of letters alone: numbers and ids differ from one call to the next.
LETTERS = re.compile(r"[^\W\d_]{2,}")
# What progress bars are drawn with; the bars of charts are drawn with other signs.
PROGRESS = "\u2501"
# A style whose escape character was escaped, so that a terminal shows its letters.
ESCAPED_STYLE = re.compile(r"u001b\[|\\x1b|\\e\[")
TERMINALS = [
    pytest.param(columns, environment, id=f"{columns} {' '.join(environment)}")
    for columns in (80, 40)
    for environment in ({}, {"NO_COLOR": "1"}, {"COLORFGBG": "0;15"})
]


def shown_on_a_terminal(calls, columns, **environment):
    """What each call leaves on a terminal for both streams: lines, and the raw text."""
    command = [sys.executable, "-c", ONE_BY_ONE, json.dumps(list(calls.values()))]
    streams = ("stdout", "stderr")
    code, text = on_a_terminal(
        command, *streams, columns=columns, COLUMNS=str(columns), **environment
    )
    assert code == 0
    # Both streams say which call begins.
    parts = parts_of(text)[1::2]
    return dict(zip(calls, parts, strict=True))


def check_screen(name, text):
    """Nothing is escaped twice, and nothing is left of progress bars, styles or a hidden cursor."""
    screen = Screen.of(text)
    lines = "\n".join(screen.lines).rstrip().split("\n")
    assert lines[-1] == "== exit 0", (name, text[-300:])
    assert "Traceback" not in text, name
    assert not ESCAPED_STYLE.search(text), (name, text[:300])
    assert screen.unknown == [], name
    assert screen.has_cursor, name
    assert screen.styles == [], name
    assert not any(PROGRESS in line for line in lines), name
    return lines[:-1]


def words_of(lines):
    return set(LETTERS.findall("\n".join(lines)))


@pytest.fixture
def logged(shopkeeper, shop_log):
    shop_log.to_csv("log.csv", index=False)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals to ask")
@pytest.mark.slow
def test_a_build_on_a_colour_terminal_shows_its_tables_and_no_escapes(logged):
    calls = {name: MORE_CALLS[name] for name in ("build of a log", "search, several")}
    shown = shown_on_a_terminal(calls, 80)
    build, search = (check_screen(name, text) for name, text in shown.items())
    assert max(map(cell_len, build)) <= 80
    assert "items  role   type    empty  example" in build
    assert "interactions  role    type    empty  example" in build
    assert "q1: red apple" in search
    assert max(map(cell_len, search)) <= 80


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals to ask")
@pytest.mark.parametrize(("columns", "environment"), TERMINALS)
def test_every_command_leaves_a_tidy_terminal(logged, columns, environment):
    calls = {
        name: call for name, call in (CALLS | MORE_CALLS).items() if not name.startswith("tune")
    }
    for name, text in shown_on_a_terminal(calls, columns, **environment).items():
        lines = check_screen(name, text)
        # What `demo` prints before each command is to be copied; `model list` shows a path.
        if name not in ("demo", "model list", "info"):
            assert [line for line in lines if cell_len(line) > columns] == [], name
        if "NO_COLOR" in environment:
            assert not COLOUR.search(text), name


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals to ask")
@pytest.mark.parametrize("no_color", ["1", None], ids=["NO_COLOR", "colours"])
def test_every_command_respects_no_color_on_a_terminal_of_80_columns(shopkeeper, no_color):
    # The others are bold and dim at most.
    coloured = {"attend"}
    command = [sys.executable, "-c", ONE_BY_ONE, json.dumps(list(CALLS.values()))]
    code, text = on_a_terminal(command, "stdout", **({"NO_COLOR": no_color} if no_color else {}))
    assert code == 0
    for name, result in zip(CALLS, parts_of(text), strict=True):
        if no_color or name in coloured:
            assert bool(COLOUR.search(result)) == (not no_color), name
        plain = re.sub(r"\x1b\[[\d;]*m", "", result)
        assert [line for line in plain.splitlines() if len(line) > 80] == [], name


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals to ask")
def test_results_fit_a_narrow_terminal_without_broken_words(logged):
    # A heat map cuts the words above it, `demo` and `teach` show one, and `info` shows a path.
    narrow_by_themselves = {"attend", "demo", "teach a lesson", "info", "tune", "model list"}
    calls = {n: c for n, c in (CALLS | MORE_CALLS).items() if n not in narrow_by_themselves}
    command = [sys.executable, "-c", ONE_BY_ONE, json.dumps(list(calls.values()))]
    shown = {}
    for columns in (40, 200):
        shutil.copy("rules.json", "ruled/rules.json")  # which the calls change
        code, text = on_a_terminal(command, "stdout", columns=columns, COLUMNS=str(columns))
        assert code == 0
        shown[columns] = [Screen.of(part).lines for part in parts_of(text)]
    for name, narrow, wide in zip(calls, shown[40], shown[200], strict=True):
        assert [line for line in narrow if cell_len(line) > 40] == [], name
        cut = {word for line in narrow for word in re.findall(r"(\w+)…", line)}
        assert words_of(narrow) <= words_of(wide) | cut, name

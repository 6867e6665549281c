"""Whatever stands in a catalog, no command lets it steer the terminal, or hide on it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import qkvsearch
from qkvsearch.cli import COMMANDS
from qkvsearch.store.search_log import SearchLog
from qkvsearch.terminal import UNSAFE
from tests.terminal import on_a_terminal

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no pseudo-terminals to ask"
)
# A title that sets the window's title, clears the screen and turns the direction. Ids and users may
# only do the last: they have no control characters.
STEER, CLEAR, TURN = "\x1b]gone\x07", "\x9b2J", "\u202e"
UGLY = f"{STEER}{CLEAR}{TURN}"
FORMATS = ("table", "json", "jsonl", "csv", "markdown")
DONE = [
    ["-w", f"new{UGLY}", "build", "--items", "items.csv", "--interactions", "log.csv"],
    ["-v", "build", "--items", "items.csv", "--interactions", "log.csv", "--plan"],
    ["add", "items.csv"],
    ["add", "items.csv", "--update"],
    ["sync", "items.csv"],
    ["remove", f"id1{TURN}", "--dry-run"],
    ["remove", "--where", f"title = 'bread 1{UGLY}'", "--dry-run"],
    ["record", f"ann{TURN}", f"id1{TURN}", "4"],
    ["record", "log.csv"],
    ["record", "--undo"],
    ["similar", f"bread 1{UGLY}"],
    ["search", f"bread {UGLY}", "--explain", "--fields", f"n{TURN}ote,note"],
    ["search", "bread", "--facets", f"note,n{TURN}ote"],
    ["search", "bread", "--sort", f"n{TURN}ote", "--no-weak"],
    ["search", "--queries", "queries.tsv"],
    ["recommend", "--user", f"ann{TURN}", "--explain"],
    ["recommend", "--all-users", "-o", f"all{UGLY}.csv"],
    ["items", "--fields", f"note,n{TURN}ote"],
    ["show", f"id1{TURN}"],
    ["users"],
    ["history", f"ann{TURN}"],
    ["attend", f"bread {UGLY} crumbs"],
    ["encode", f"bread {UGLY} crumbs"],
    ["export", "embeddings", "--to", f"all{UGLY}.npz"],
    ["teach", "context", "--sentence", f"bread {UGLY} bread", "--no-quiz"],
    ["evaluate", "search", "--queries", "queries.tsv", "--qrels", "qrels.txt"],
    ["evaluate", "recommend", "--protocol", "random"],
    ["evaluate", "search"],
    ["evaluate", "search", "--from-clicks"],
    ["searches"],
    ["compare", "--queries", "queries.tsv", "--heads", "lexical"],
    ["tune", "--trials", "1"],
    ["tune", "search"],
    ["info"],
    ["records", "--user", f"ann{TURN}"],
    ["learn"],
    ["builds"],
    ["rollback"],
    ["compact", "--drop-builds"],
    ["repair"],
    ["forget", f"bob{TURN}", "--dry-run"],
    ["data", "list"],
    ["model", "list"],
    ["doctor"],
    ["demo"],
]
REFUSED = [
    ["serve", "--port", "0", "--token-file", f"no{UGLY}.txt"],
    ["serve", "--port", "0", "--search-token", f"no{UGLY}.txt"],
    ["serve", "--port", "0", "--root-path", f"no{UGLY}"],
    ["serve", "--port", "0", "--proxy", f"no{UGLY}"],
    ["build", "--items", "items.csv", "--id-column", f"i{UGLY}d"],
    ["build", f"no{UGLY}.csv"],
    ["add", f"no{UGLY}.csv"],
    ["sync", f"no{UGLY}.csv"],
    ["remove", "--where", f"noet = '{UGLY}'"],
    ["record", f"ann{UGLY}", "bread 1"],
    ["record", f"no{UGLY}.csv"],
    ["similar", f"brad 1{UGLY}"],
    ["search", "bread", "--fields", f"not{UGLY}"],
    ["search", "bread", "--sort", f"not{UGLY}"],
    ["search", "bread", "--where", f"note = '{UGLY}"],
    ["search", f"--{UGLY}"],
    ["recommend", "--strict-user", "--user", f"anne{UGLY}"],
    ["recommend", "--like", f"braed 1{UGLY}"],
    ["recommend", "--like", f"twin{UGLY}"],
    ["recommend", "--all-users", "-o", f"all{UGLY}.txt"],
    ["show", f"title:bred 1{UGLY}"],
    ["history", f"anne{UGLY}"],
    ["teach", f"mask{UGLY}"],
    ["evaluate", "search", "--queries", "queries.tsv", "--qrels", "wrong.txt"],
    ["records", "--user", f"anne{UGLY}"],
    ["rollback", f"2024{UGLY}"],
    ["forget", f"anne{UGLY}", "--yes"],
    ["data", "fetch", f"ml{UGLY}"],
    ["model", "fetch", f"mini{UGLY}"],
    ["demo", f"x{UGLY}"],
    [f"serch{UGLY}"],
    ["-w", f"no{UGLY}", "info"],
]
LISTS = (
    "similar", "search", "recommend", "items", "show", "users", "history", "info", "attend",
    "records", "builds", "searches",
)  # fmt: skip
ALL = [
    [*call, *form]
    for call in DONE
    for form in (
        [["--format", name] for name in FORMATS] if call[0] in LISTS and "-o" not in call else [[]]
    )
] + REFUSED
# One after the other in one process, so that it is started once.
ONE_BY_ONE = """
import json, sys
from qkvsearch.cli import main

codes = []
for args in json.loads(sys.argv[1]):
    try:
        main(args)
    except SystemExit as stopped:
        codes.append(stopped.code)
        open("codes.json", "w").write(json.dumps(codes))
"""
# What is ours: styles, and how a progress bar is drawn again.
OURS = re.compile(r"\x1b\[(?:[\d;]*m|\d*[AK]|\?25[lh])")


@pytest.fixture
def ugly(surroundings, tmp_path, monkeypatch):
    """A workspace whose titles, ids, users, columns and cells are such, and the files of it."""
    items = pd.DataFrame(
        {
            "id": [f"id{i}{TURN}" for i in range(8)],
            "title": [*(f"bread {i}{UGLY}" for i in range(6)), f"twin{UGLY}", f"twin{UGLY}"],
            "note": [UGLY] * 8,
            f"n{TURN}ote": [f"a{TURN}b"] * 8,
        }
    )
    log = pd.DataFrame(
        [(f"{user}{TURN}", f"id{i}{TURN}", i) for user in ("ann", "bob") for i in range(1, 5)],
        columns=["user", "item", "rating"],
    )
    items.to_csv("items.csv", index=False)
    log.to_csv("log.csv", index=False)
    (tmp_path / "queries.tsv").write_text(f"q{UGLY}\tbread\n", encoding="utf-8")
    (tmp_path / "qrels.txt").write_text(f"q{UGLY}\tid1{TURN}\t1\n", encoding="utf-8")
    (tmp_path / "wrong.txt").write_text(f"r{UGLY}\tid1{TURN}\t1\n", encoding="utf-8")
    qkvsearch.build("ws", items=items, interactions=log, encoder="corpus").close()
    searched = SearchLog(Path("ws"), 30, print)
    for visitor in "abc":
        unknown = {"reason": "unknown_words", "words": [f"brot{UGLY}"]}
        searched.add_search(visitor, f"brot{UGLY}", total=0, shown=[], no_hits=unknown)
        query_id = searched.add_search(visitor, f"bread {UGLY}", total=8, shown=[])
        searched.add_click(query_id, f"id1{TURN}", 4)
    monkeypatch.setenv("QKVSEARCH_WORKSPACE", "ws")


def asked(calls):
    return [sys.executable, "-c", ONE_BY_ONE, json.dumps(calls)]


def raw(text):
    """What of a text should not be there, each with what stands around it."""
    text = OURS.sub("", text.replace("\r\n", "\n")).replace("\r", "")
    return [text[max(found.start() - 80, 0) : found.end() + 20] for found in UNSAFE.finditer(text)]


def test_every_command_is_asked():
    asked = {word for call in DONE for word in call[:3:2] if word in COMMANDS}
    assert asked == set(COMMANDS) - {"serve"}  # which is not done by itself


def check_codes():
    """What should be done was done, and what should be refused was refused."""
    codes = dict(zip(map(str, ALL), json.loads(Path("codes.json").read_text()), strict=True))
    wrong = [call for call, code in codes.items() if (code > 0) != (call in map(str, REFUSED))]
    assert wrong == []


@pytest.mark.slow
def test_nothing_raw_reaches_a_terminal(ugly):
    _, text = on_a_terminal(asked(ALL), "stdout", "stderr")
    check_codes()
    assert raw(text) == []
    assert "Traceback" not in text
    assert text.count(r"\u001b]gone\u0007") > 100
    assert text.count(r"\u202e") > 100


def test_a_question_before_a_change_names_nothing_raw(ugly):
    command = asked([["forget", f"bob{TURN}"]])
    code, text = on_a_terminal(command, "stdin", "stdout", "stderr", typed="n\n")
    assert code == 0
    assert raw(text) == []
    assert r"Forget bob\u202e?" in text
    assert "Nothing was changed." in text


@pytest.mark.slow
def test_nothing_raw_reaches_stderr_in_a_pipe_and_rows_for_programs_are_whole(ugly):
    env = {**os.environ, "PYTHONUTF8": "1"}
    done = subprocess.run(asked(ALL), capture_output=True, env=env, stdin=subprocess.DEVNULL)
    check_codes()
    said = done.stderr.decode("utf-8")
    assert raw(said) == []
    assert "Traceback" not in said
    items = asked([["items", "--format", "csv"]])
    rows = subprocess.run(items, capture_output=True, env=env).stdout.decode("utf-8")
    assert f"id1{TURN},bread 1{UGLY}" in rows

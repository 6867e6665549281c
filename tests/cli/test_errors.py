"""Errors: one clear sentence, the right exit code, never a traceback."""

import os
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-c", "from qkvsearch.cli import main; main()"]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("build", "nofile.csv"), 1, "nofile.csv"),
        (("build", "sample:viedos"), 1, "no sample 'viedos'"),
        (("-w", "sample:movies", "similar", "Little Women"), 1, "m121 = Little Women"),
        (("-w", "sample:movies", "search", "x", "--where", "nonsense ("), 1, "--where"),
        (("-w", "sample:movies", "search", "x", "--where", "(SELECT 1 FROM builds)"), 1, "--where"),
        (("serch", "x"), 2, "did you mean search"),
        (("frobnicate",), 2, "see qkvsearch --help"),
        (("search",), 2, "QUERY"),
        (("search", "x", "-k", "-1"), 2, "-1"),
        (("similar", "Heat", "-k", "many"), 2, "many"),
        (("search", "x", "--format", "yaml"), 2, "yaml"),
        (("recommend",), 2, "--like"),
        (("recommend", "--user", "a", "--user", "b"), 2, "--user is given 2 times"),
        (("search", "x", "--where", "a = 1", "--where", "b = 2"), 2, "--where is given 2 times"),
        (("rules", "add", "--pin", "a=1", "--pin", "b=2"), 2, "--pin is given 2 times"),
        (("evaluate", "search", "--queries", "a", "--queries", "b"), 2, "--queries is given 2"),
        (("attend", "x", "--mask", "triangle"), 2, "triangle"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_mistakes_are_told_in_a_sentence_with_the_right_exit_code(qkv, args, code, said):
    """Names that are nearly right, and options that do not exist: in tests/contract."""
    answer = qkv("-q", *args)
    assert answer.code == code
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr
    assert answer.stdout == ""


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("recommend", "--user", "u001", "--damping", "nan"), "--damping must be a number from 0"),
        (("recommend", "--user", "u001", "--diversity", "nan"), "--diversity must be a number"),
        (("search", "war", "--temperature", "inf"), "--temperature must be a number above 0"),
        (("tune", "--minutes", "nan"), "--minutes must be a number above 0"),
        (("recommend", "--user", "u001", "--model", "next-item", "--recent", "3"),
         "leave --recent out"),
        (("recommend", "--user", "u001", "--model", "next-item"), "build with --next-item"),
        (("search", "war", "--where", "`recent` > 3"), "--where '`recent` > 3': no such column"),
        (("recommend", "--like", "`items`"), "no item '`items`'"),
        (("search", "war", "--heads", "collaborative"), "name the user (--user)"),
        (("evaluate", "recommend", "--next-item"),
         "--next-item predicts what comes last, but --protocol random holds out"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)  # fmt: skip
def test_a_parameter_is_spelled_as_the_option_that_was_given(qkv, movies_path, args, said):
    answer = qkv("-w", movies_path, *args)
    assert (answer.code, answer.stdout) == (1, "")
    assert said in answer.stderr
    assert "Error: " in answer.stderr


def test_a_workspace_without_interactions_says_how_to_get_some(qkv, things_path):
    answer = qkv("-w", things_path, "recommend", "--like", "Why do cats purr?")
    assert answer.code == 0
    assert "By text alone" in answer.stderr
    assert "build with --interactions FILE" in answer.stderr
    answer = qkv("-w", things_path, "recommend", "--all-users", "-o", "all.csv")
    assert (answer.code, answer.stdout) == (1, "")
    assert "build with --interactions FILE" in answer.stderr


def test_a_stdin_that_is_no_text_is_no_crash(videos_path):
    answer = subprocess.run(
        [*COMMAND, "-w", videos_path, "search", "-"], input=b"\xff", capture_output=True
    )
    assert answer.returncode == 0
    assert b"No hits" in answer.stderr
    assert b"Traceback" not in answer.stderr


@pytest.mark.slow
@pytest.mark.parametrize("args", [("--help",), ("-q", "demo")], ids=["help", "demo"])
def test_a_pipe_that_knows_few_letters_still_gets_all_of_them(args, qkv):
    answer = subprocess.run(
        [*COMMAND, *args],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"},
    )
    assert answer.stderr.decode() == ""
    assert answer.stdout.decode("utf-8").replace("\r", "") == qkv(*args).stdout


@pytest.mark.skipif(sys.platform == "win32", reason="a closed pipe is another error on Windows")
def test_a_pipe_closed_early_is_no_error(videos_path):
    question = ["-w", str(videos_path), "search", "attention", "-k", "100"]
    options = ["--explain", "--format", "json"]
    process = subprocess.Popen(
        [*COMMAND, *question, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"[\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() in (0, 1)  # as Click's version will have it

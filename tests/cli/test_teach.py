"""`teach`: what the terminal shows, how it is asked for, questions answered, what is remembered."""

from __future__ import annotations

import json
import os
import re
import signal
import sys

import pytest
from rich.cells import cell_len

from qkvsearch.lessons import LESSONS, lesson, outline, progress
from qkvsearch.lessons.messages import LOCALE, shown

NAME = "self-attention"
STEPS = lesson(NAME).steps
OWN = {
    "x.csv": "1;0\n0;1\n",
    "wq.csv": "1,2\n3,4\n",
    "wk.txt": "first second\n1 0\n0 1\n",
    "wv.tsv": "5\t0\t1\n0\t5\t1\n",
}
needs_chinese = pytest.mark.skipif(
    not any(LOCALE.glob("zh/*/*.mo")), reason="the Chinese catalogue is not made yet"
)


@pytest.fixture(autouse=True)
def a_place_of_their_own(tmp_path, monkeypatch):
    """Progress is kept beside the test, and the language is English unless a test says so."""
    monkeypatch.setattr(progress, "data_home", lambda: tmp_path / "data")
    for name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)


def plain(text):
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def widest(text):
    return max(map(cell_len, plain(text).splitlines()))


# --- the course ---


def test_alone_it_shows_the_course_how_long_it_takes_and_how_to_begin(qkv):
    answer = qkv("teach")
    assert (answer.code, answer.stderr) == (0, "")
    for line in outline():
        assert re.search(rf"^ *{line.number}  {line.name} .* {line.minutes}$", answer.stdout, re.M)
    assert str(sum(line.minutes for line in outline())) in answer.stdout
    assert f"Begin: qkvsearch teach {LESSONS[0]}\n" in answer.stdout
    assert len(answer.stdout.splitlines()) < 24


def test_the_list_is_an_array_with_what_is_done(qkv):
    progress.remember("masks")
    rows = json.loads(qkv("teach", "--list", "--format", "json").stdout)
    assert [row["name"] for row in rows] == list(LESSONS)
    assert list(rows[0]) == ["name", "number", "title", "goal", "minutes", "done"]
    assert [row["name"] for row in rows if row["done"]] == ["masks"]
    said = " ".join(qkv("teach", "--list").stdout.split())
    assert all(row["goal"] in said for row in rows)


def test_a_lesson_that_was_shown_to_its_end_is_done_and_the_next_is_named(qkv):
    qkv("teach", LESSONS[0], "--step", 1)
    qkv("teach", LESSONS[0], "--format", "json")
    qkv("teach", LESSONS[0], "-o", "lesson.txt")
    assert progress.done() == frozenset()
    qkv("teach", LESSONS[0])
    assert progress.done() == {LESSONS[0]}
    assert f"Go on: qkvsearch teach {LESSONS[1]}\n" in qkv("teach").stdout
    for name in LESSONS:
        progress.remember(name)
    assert "All lessons are done." in qkv("teach").stdout


def test_what_cannot_be_remembered_is_said_and_stops_nothing(qkv, monkeypatch):
    monkeypatch.setattr(progress, "remember", lambda name: False)
    answer = qkv("teach", NAME)
    assert answer.code == 0
    assert "could not be kept" in answer.stderr


# --- what a lesson looks like ---


def test_a_lesson_shows_every_title_and_every_number(qkv):
    text = qkv("teach", NAME).stdout
    for number, step in enumerate(STEPS, start=1):
        assert f"Step {number}: {step.title}\n" in text
    for row in lesson(NAME).showing(44).found["output"], *lesson(NAME).showing(42).found["weights"]:
        for value in row:
            assert shown(value) in text


def test_a_matrix_is_aligned_with_its_labels_name_and_role(qkv):
    text = qkv("teach", NAME, "--step", 2).stdout
    assert "W_V (weight matrix)\n   1  2  3\n1  0  2  0\n2  0  3  0\n3  1  0  3\n" in text
    text = qkv("teach", NAME, "--step", 5).stdout
    row = "b    6.0e-06  █ 0.9820    0.0180\n"
    assert (
        f"weights\n           a         b         c\na     0.0634  ▒ 0.4683  ▒ 0.4683\n{row}"
        in text
    )
    assert "░ 0.2  ▒ 0.4  ▓ 0.6  █ 0.8" in text


def test_symbols_stand_in_the_cells_or_else_one_below_another(qkv):
    scores = qkv("teach", NAME, "--step", 4).stdout
    assert "\nb        4       16       12\n   b_Q·a_K  b_Q·b_K  b_Q·c_K\n" in scores
    assert "  a1·k11 + a2·k21 + a3·k31 + a4·k41 = 0\n" in qkv("teach", NAME, "--step", 3).stdout
    assert "  c = S_ca·a_V + S_cb·b_V + S_cc·c_V\n" in qkv("teach", NAME, "--step", 8).stdout


def test_the_mask_is_seen_without_colour(qkv):
    text = qkv("teach", "masks", "--step", 11).stdout
    assert re.search(r"^a  5\.6569 +· −∞ +· −∞ +· −∞$", text, re.M)
    assert re.search(r"^a  █ 1 +· 0 +· 0 +· 0$", text, re.M)
    assert "· hidden by the mask." in text


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("lang", ["en", pytest.param("zh", marks=needs_chinese)])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_cut(qkv, monkeypatch, columns, lang):
    monkeypatch.setenv("COLUMNS", str(columns))
    answer = qkv("teach", "--all", "--lang", lang)
    assert answer.code == 0, answer.stderr
    assert widest(answer.stdout) <= columns
    assert "\x1b" not in answer.stdout
    found = [lesson(name) for name in LESSONS]
    numbers = sum(len(one.steps) for one in found)
    headings = re.findall(r"^(?:Step \d+: |第 \d+ 步：)", answer.stdout, re.M)
    assert len(headings) == numbers


@needs_chinese
def test_in_chinese_nothing_that_the_command_says_is_english(qkv):
    text = qkv("teach", NAME, "--lang", "zh").stdout
    english = (
        "Step",
        "Lesson",
        "Question",
        "Answers",
        "Right",
        "minutes",
        "weight",
        "query",
        "The",
    )
    assert [word for word in english if word in text] == []
    assert "查询" in text


@needs_chinese
@pytest.mark.parametrize(
    ("environment", "is_chinese"),
    [
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LC_ALL": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, False),
        ({"LANG": "C.UTF-8"}, False),
        ({}, False),
    ],
)
def test_the_language_is_that_of_the_system(qkv, monkeypatch, environment, is_chinese):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert bool(re.search("[\u4e00-\u9fff]", qkv("teach").stdout)) == is_chinese
    assert not re.search("[\u4e00-\u9fff]", qkv("teach", "--lang", "en").stdout)


def test_colour_is_all_that_no_color_takes_away(qkv, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    coloured = qkv("teach", NAME).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    without = qkv("teach", NAME).stdout
    monkeypatch.setenv("TERM", "dumb")
    dumb = qkv("teach", NAME).stdout
    assert "\x1b[38" in coloured or "\x1b[1;38" in coloured
    assert not re.search(r"\x1b\[(\d+;)*38", without)
    assert "\x1b" not in dumb
    assert plain(coloured) == plain(without) == dumb


def test_a_wide_matrix_comes_in_parts(qkv, monkeypatch, tmp_path):
    rows = [",".join(str(100 * i + j) for j in range(40)) for i in range(3)]
    (tmp_path / "x.csv").write_text("\n".join(rows))
    for name in ("wq", "wk", "wv"):
        (tmp_path / f"{name}.csv").write_text("1\n" * 40)
    files = [f"--{name}={name}.csv" for name in ("wq", "wk", "wv")]
    text = qkv("teach", NAME, "--step", 1, "--input", "x.csv", *files).stdout
    assert widest(text) <= 80
    parts = re.findall(r"^c  (.*)$", text, re.M)
    assert len(parts) > 1
    assert " ".join(parts).split() == [str(200 + j) for j in range(40)]


# --- your own numbers ---


@pytest.fixture
def own(tmp_path):
    for name, text in OWN.items():
        (tmp_path / name).write_text(text)
    return ["--input", "x.csv", "--wq", "wq.csv", "--wk", "wk.txt", "--wv", "wv.tsv"]


def test_ones_own_matrices_go_through_the_lesson(qkv, own):
    answer = qkv("teach", NAME, *own, "--mask", "causal", "--format", "json")
    parts = [part for step in json.loads(answer.stdout)["steps"] for part in step["parts"]]
    matrices = {part["name"]: part for part in parts if part["kind"] == "matrix"}
    assert matrices["queries Q"]["values"] == [[1.0, 2.0], [3.0, 4.0]]
    assert matrices["weights"]["values"][0] == [1.0, 0.0]
    same = qkv("teach", NAME, *own, "--mask", "look-ahead", "--format", "json")
    assert same.stdout == answer.stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("softmax", "--input", "x.csv"), "--input has no place in the lesson softmax"),
        ((NAME, "--input", "no.csv"), "no.csv: cannot read"),
        ((NAME, "--input", "x.csv"), "--wq: 4 rows, but the inputs have 2 columns"),
        ((NAME, "--sentence", "hi"), "--sentence has no place in the lesson self-attention"),
        (("mask",), "no lesson 'mask'; did you mean masks"),
        (("11",), "no lesson '11'"),
        ((NAME, "--step", "0"), "no step 0 in the lesson self-attention (there are 1 Prepare"),
        ((NAME, "--step", "9"), "8 Repeat for every input)"),
        (("--answers", "no.csv"), "no.csv: cannot read"),
        ((NAME, "-o", "nowhere/a.md"), "nowhere/a.md: cannot write"),
        ((NAME, "--plot", "nowhere/a.svg"), "a.svg"),
    ],
)
def test_what_cannot_be_is_a_sentence(qkv, own, args, said):
    answer = qkv("teach", *args)
    assert (answer.code, answer.stdout) == (1, "")
    assert answer.stderr.startswith("Error: ")
    assert said in answer.stderr


@pytest.mark.parametrize(
    "args",
    [
        (NAME, "--all"), (NAME, "--list"), ("--all", "--list"), ("--step", "1"),
        ("--all", "--step", "1"), ("--plot", "a.svg"), (NAME, "--plot", "a.html"),
        ("--input", "x.csv"), ("--all", "--mask", "both"), ("--answers", "a.csv", "--all"),
        (NAME, "--format", "csv"), (NAME, "--format", "jsonl"), (NAME, "-o", "a.parquet"),
        ("--list", "--format", "html"), ("--format", "ipynb"), (NAME, "-o", "a.docx"),
        (NAME, "--step", "1", "--format", "ipynb"), (NAME, "--lang", "de"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_does_not_go_together_is_wrong_usage(qkv, own, args):
    answer = qkv("teach", *args)
    assert (answer.code, answer.stdout) == (2, "")
    assert "Error: " in answer.stderr


# --- questions and answers ---


def test_without_a_terminal_questions_come_with_their_answers_after(qkv):
    text = qkv("teach", NAME).stdout
    questions, answers = text.split("\nQuestions\n")[1].split("\nAnswers\n")
    quizzes = lesson(NAME).quizzes
    for number, quiz in enumerate(quizzes, start=1):
        assert re.search(rf"^{number}\. {re.escape(quiz.question[:40])}", questions, re.M)
        assert re.search(rf"^{number}\. {re.escape(quiz.solution)} — ", answers, re.M)
    assert f"2) {quizzes[2].choices[1]}\n" in questions
    assert "Questions" not in qkv("teach", NAME, "--no-quiz").stdout


def test_answers_of_a_class_are_judged_in_every_listing(qkv, tmp_path):
    rows = ["student,quiz,answer", f"Ada,{NAME}.1,12", f"Bo,{NAME}.1,13", f"Bo,{NAME}.2,2"]
    (tmp_path / "class.csv").write_text("\n".join(rows))
    answer = qkv("teach", "--answers", "class.csv", "--format", "json")
    found = json.loads(answer.stdout)
    assert [(row["student"], row["right"]) for row in found] == [
        ("Ada", True), ("Bo", False), ("Bo", True),
    ]  # fmt: skip
    assert list(found[0]) == ["student", "quiz", "given", "right", "answer", "worked"]
    assert answer.stderr == "Ada: 1 of 1 right.\nBo: 1 of 2 right.\n"
    table = qkv("teach", "--answers", "class.csv").stdout
    assert re.search(rf"^Bo +{NAME}\.1 +13 +wrong +12$", table, re.M)
    assert lesson(NAME).quizzes[0].worked[:30] in table
    assert qkv("-q", "teach", "--answers", "class.csv").stderr == ""


def test_an_unknown_quiz_is_named_with_near_ones(qkv, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"self-atention.1": 3}))
    answer = qkv("teach", "--answers", "a.json")
    assert (answer.code, answer.stdout) == (1, "")
    assert "no quiz 'self-atention.1'; did you mean self-attention.1" in answer.stderr


@pytest.fixture
def at_a_terminal(qkv, monkeypatch):
    """Someone who types these lines."""
    from qkvsearch.cli.lesson import reading

    def run(*args, types=()):
        monkeypatch.setattr(reading, "is_interactive", lambda: True)
        return qkv(*args, stdin="".join(f"{line}\n" for line in types))

    return run


def pauses(text):
    return text.count("Enter goes on, q ends.")


def test_at_a_terminal_it_waits_and_judges_and_shows_the_step_after_a_wrong_answer(at_a_terminal):
    quizzes = lesson(NAME).quizzes
    enters = [""] * pauses(at_a_terminal("teach", NAME, types=[""] * 99).stdout)
    assert len(enters) >= len(STEPS)
    answer = at_a_terminal("teach", NAME, types=[*enters, "11", "2", "b"])
    assert answer.code == 0
    assert pauses(answer.stdout) == len(enters)
    assert quizzes[0].worked in answer.stdout
    assert quizzes[1].worked not in answer.stdout
    assert answer.stdout.count("Right.") == 2
    assert "2 of 3 right." in answer.stdout
    assert progress.done() == {NAME}
    assert f"Next: qkvsearch teach {LESSONS[0]}" in answer.stdout


def test_no_screen_is_higher_than_the_terminal(at_a_terminal, monkeypatch):
    monkeypatch.setenv("LINES", "24")
    answer = at_a_terminal("teach", NAME, "--no-quiz", types=[""] * 99)
    screens = answer.stdout.split("Enter goes on, q ends.")
    assert max(screen.count("\n") for screen in screens) <= 24
    assert progress.done() == {NAME}


def test_q_ends_without_an_error_and_the_lesson_is_not_done(at_a_terminal):
    answer = at_a_terminal("teach", NAME, types=["", "q"])
    assert (answer.code, pauses(answer.stdout)) == (0, 2)
    assert progress.done() == frozenset()


def test_one_step_is_no_whole_lesson(at_a_terminal):
    answer = at_a_terminal("teach", NAME, "--step", 1)
    assert (answer.code, pauses(answer.stdout)) == (0, 0)
    assert progress.done() == frozenset()


def test_where_nobody_types_any_more_it_stops_with_130(at_a_terminal):
    answer = at_a_terminal("teach", NAME, types=[""])
    assert answer.code == 130
    assert progress.done() == frozenset()


def test_alone_at_a_terminal_it_offers_the_next_lesson(at_a_terminal):
    assert "Lesson 1: " in at_a_terminal("teach", types=["", "q"]).stdout
    assert "Lesson 7: " in at_a_terminal("teach", types=["7", "q"]).stdout
    assert "Lesson 7: " in at_a_terminal("teach", types=[NAME, "q"]).stdout
    assert "Lesson" not in at_a_terminal("teach", types=["q"]).stdout
    assert "no lesson 'mask'; did you mean masks" in at_a_terminal("teach", types=["mask"]).stderr


def test_all_at_a_terminal_goes_from_lesson_to_lesson(at_a_terminal):
    n = pauses(at_a_terminal("teach", LESSONS[0], "--no-quiz", types=[""] * 99).stdout)
    answer = at_a_terminal("teach", "--all", "--no-quiz", types=[*[""] * (n + 1), "q"])
    assert "Lesson 2: " in answer.stdout
    assert progress.done() == {LESSONS[0]}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals to ask")
class TestARealTerminal:
    @pytest.fixture
    def spawn(self, tmp_path, monkeypatch):
        """Starts `teach` on a pseudo-terminal of its own, and stops it at the end."""
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        started = []

        def start(*args):
            started.append(Session(args))
            return started[-1]

        yield start
        for session in started:
            session.close()

    def test_it_waits_for_enter_and_goes_on(self, spawn):
        session = spawn(NAME, "--lang", "en")
        assert "Step 2:" not in session.read_until("Enter goes on")
        session.type("\n")
        session.read_until("Step 2:")
        session.read_until("Enter goes on")
        session.type("q\n")
        assert session.exit_code() == 0

    def test_ctrl_c_is_130(self, spawn):
        session = spawn(NAME, "--lang", "en")
        session.read_until("Enter goes on")
        session.type("\x03")
        session.read_until("Stopped.")
        assert session.exit_code() == 130


class Session:
    """A `teach` on a pseudo-terminal, and the side of the person."""

    def __init__(self, args):
        import pty

        self.unread, self.code = "", None
        self.pid, self.ours = pty.fork()
        if self.pid == 0:
            code = "from qkvsearch.cli import main; main()"
            os.execv(sys.executable, [sys.executable, "-c", code, "teach", *args])

    def read_until(self, wanted):
        """What came up to there; gives up after a minute of silence."""
        import select

        while wanted not in self.unread:
            assert select.select([self.ours], [], [], 60)[0], f"no {wanted!r} in {self.unread!r}"
            try:
                piece = os.read(self.ours, 1 << 16)
            except OSError:  # how Linux says that the other side is closed
                piece = b""
            assert piece, f"no {wanted!r} in {self.unread!r}"
            self.unread += piece.decode("utf-8", "replace")
        text, _, self.unread = self.unread.partition(wanted)
        return text

    def type(self, keys):
        os.write(self.ours, keys.encode())

    def exit_code(self):
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def close(self):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            self.exit_code()
        os.close(self.ours)


# --- files ---


@pytest.mark.parametrize(
    ("name", "begins"),
    [("a.md", "# "), ("a.html", "<!doctype html>"), ("a.ipynb", "{"), ("a.txt", "Lesson 7"),
     ("a.json", "{")],
)  # fmt: skip
def test_a_file_name_says_the_format(qkv, tmp_path, name, begins):
    answer = qkv("teach", NAME, "-o", name)
    assert (answer.code, answer.stdout) == (0, "")
    text = (tmp_path / name).read_text("utf-8")
    assert text.lower().startswith(begins.lower())
    assert STEPS[2].title in text
    assert ("\x1b" in text) is False


def test_a_text_file_has_no_escapes_even_from_a_terminal(qkv, tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    qkv("teach", NAME, "-o", "a.txt")
    assert "\x1b" not in (tmp_path / "a.txt").read_text("utf-8")


def test_json_of_one_lesson_is_an_object_and_of_all_an_array(qkv):
    one = json.loads(qkv("teach", "1", "--format", "json").stdout)
    assert (one["name"], len(one["quizzes"])) == (LESSONS[0], len(lesson(LESSONS[0]).quizzes))
    all_ = json.loads(qkv("teach", "--all", "--no-quiz", "--format", "json").stdout)
    assert [entry["name"] for entry in all_] == list(LESSONS)
    assert not any(entry["quizzes"] for entry in all_)
    step = json.loads(qkv("teach", NAME, "--step", "4", "--format", "json").stdout)
    assert [entry["title"] for entry in step["steps"]] == [STEPS[3].title]


@pytest.mark.parametrize(("name", "begins"), [("a.png", b"\x89PNG"), ("a.SVG", b"<?xml")])
@pytest.mark.parametrize("asked", [(NAME,), ("learning",), (NAME, "--step", "1"), ("masks",)])
def test_a_plot_is_drawn_and_twice_the_same(qkv, tmp_path, name, begins, asked):
    pytest.importorskip("matplotlib", reason="drawing needs the extra [plot]")
    written = []
    for _ in range(2):
        answer = qkv("teach", *asked, "--plot", name)
        assert (answer.code, answer.stderr) == (0, f"Wrote {name}.\n")
        written.append((tmp_path / name).read_bytes())
    assert written[0].startswith(begins)
    assert written[0] == written[1]
    assert answer.stdout == qkv("teach", *asked).stdout


def test_a_plot_holds_the_weights_and_curves(qkv, tmp_path):
    pytest.importorskip("matplotlib", reason="drawing needs the extra [plot]")
    qkv("teach", "learning", "--plot", "a.svg")
    text = (tmp_path / "a.svg").read_text("utf-8")
    for part in ("weights, learned", "loss", "0.87"):
        assert part in text


def test_a_plot_without_matplotlib_says_what_to_install(qkv, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    answer = qkv("teach", NAME, "--plot", "a.png")
    assert (answer.code, answer.stdout) == (1, "")
    assert "pip install 'qkvsearch[plot]' (--format html needs nothing)" in answer.stderr

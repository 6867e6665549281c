"""`teach` where someone reads: it waits, asks, judges, and stops when they want to."""

import os
import signal
import sys
from pathlib import Path

import pytest

from qkvsearch.lessons import LESSONS, progress

NAME = "self-attention"


@pytest.fixture
def at_a_terminal(qkv, monkeypatch):
    """Someone who types these lines."""
    from qkvsearch.cli.lesson import reading

    def run(*args, types=()):
        monkeypatch.setattr(reading, "is_interactive", lambda: True)
        return qkv(*args, stdin="".join(f"{line}\n" for line in types))

    return run


def pauses(text):
    return text.count("Enter goes on, ")


def test_at_a_terminal_it_waits_and_judges_and_shows_the_step_after_a_wrong_answer(
    at_a_terminal, taught
):
    quizzes = taught.quizzes
    enters = [""] * pauses(at_a_terminal("teach", NAME, types=[""] * 99).stdout)
    assert len(enters) >= len(taught.steps)
    answer = at_a_terminal("teach", NAME, types=[*enters, "zero", "11", "0", "2", "2", "3", "2"])
    assert answer.code == 0
    assert pauses(answer.stdout) == len(enters)
    assert quizzes[0].worked in answer.stdout
    assert "Type a number" in answer.stdout
    assert (
        "Not yet. That is too little. Try once more." in answer.stdout
        or "too much" in answer.stdout
    )
    assert quizzes[1].worked not in answer.stdout
    assert answer.stdout.count("Right.") == 4
    assert "4 of 5 right." in answer.stdout
    assert progress.done() == {NAME}
    assert f"Next: qkvsearch teach {LESSONS[0]}" in answer.stdout


def test_no_screen_is_higher_than_the_terminal(at_a_terminal, monkeypatch):
    monkeypatch.setenv("LINES", "24")
    answer = at_a_terminal("teach", NAME, "--no-quiz", types=[""] * 99)
    screens = answer.stdout.split("Enter goes on, ")
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
    assert "Lesson 0: " in at_a_terminal("teach", types=["", "q"]).stdout
    assert "Lesson 7: " in at_a_terminal("teach", types=["7", "q"]).stdout
    assert "Lesson 7: " in at_a_terminal("teach", types=[NAME, "q"]).stdout
    assert "Lesson" not in at_a_terminal("teach", types=["q"]).stdout
    assert "no lesson 'mask'; did you mean masks" in at_a_terminal("teach", types=["mask"]).stderr


def test_all_at_a_terminal_goes_from_lesson_to_lesson(at_a_terminal):
    n = pauses(at_a_terminal("teach", LESSONS[0], "--no-quiz", types=[""] * 99).stdout)
    answer = at_a_terminal("teach", "--all", "--no-quiz", types=[*[""] * (n + 1), "q"])
    assert "Lesson 1: " in answer.stdout
    assert progress.done() == {LESSONS[0]}


def test_b_goes_back_and_a_lesson_goes_on_where_it_was_left(at_a_terminal):
    answer = at_a_terminal("teach", "dot-product", types=[""] * 40 + ["q"])
    assert progress.places() == {} or progress.done() == {"dot-product"}
    progress.keep_place("masks", 3)
    answer = at_a_terminal("teach", "masks", types=["b", "q"])
    assert "You were at step 3 of 9" in answer.stdout
    shown = [line for line in answer.stdout.splitlines() if line.startswith("Step ")]
    assert [line.partition(":")[0] for line in shown] == ["Step 3 of 9", "Step 2 of 9"]
    assert progress.places() == {"masks": 2}
    assert "Go on at step 2: qkvsearch teach masks" in at_a_terminal("teach", types=["q"]).stdout


def test_in_a_question_q_leaves_and_b_is_no_answer(at_a_terminal):
    answer = at_a_terminal("teach", "check", types=["", "b", "q"])
    assert answer.code == 0
    assert "no way back" in answer.stdout
    assert "Question 2" not in answer.stdout
    for judged in ("Right.", "Not quite", "Not yet"):
        assert judged not in answer.stdout
    assert progress.done() == frozenset()


def test_answers_that_end_with_q_are_not_written(at_a_terminal):
    answer = at_a_terminal("teach", "check", "--save", "before.csv", types=["", "2", "q"])
    assert answer.code == 0
    assert "before.csv is not written" in answer.stdout
    assert not Path("before.csv").exists()


def test_answers_before_the_course_are_kept_for_the_teacher_without_a_hint(at_a_terminal):
    # 9 is no choice and is asked for again; what comes last is a sentence of one's own.
    typed = ["", "2", "9", *"213213213", "Words ask words."]
    answer = at_a_terminal("teach", "check", "--save", "before.csv", types=typed)
    header, *rows = Path("before.csv").read_text("utf-8").splitlines()
    assert header == "quiz,answer,right"
    *answers, sentence = rows
    assert [row.split(",")[1:3] for row in answers] == [[digit, "yes"] for digit in "2213213213"]
    assert sentence == "check.explain,Words ask words.,"
    assert "Nothing compares it" in answer.stdout
    assert "Right" not in answer.stdout
    assert "Not yet" not in answer.stdout


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
        assert "Step 2 of" not in session.read_until("Enter goes on")
        session.type("\n")
        session.read_until("Step 2 of 8:")
        session.read_until("Enter goes on")
        session.type("q\n")
        assert session.exit_code() == 0

    def test_ctrl_c_is_130(self, spawn):
        session = spawn(NAME, "--lang", "en")
        session.read_until("q ends. ")
        session.type_until("\x03", "Stopped.")
        assert session.exit_code() == 130


class Session:
    """A `teach` on a pseudo-terminal, and the side of the person."""

    def __init__(self, args):
        import pty

        self.unread, self.code = "", None
        self.pid, self.ours = pty.fork()
        if self.pid == 0:
            # Ctrl-C is ignored by what was started in the background, such as a batch of tests.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            code = "from qkvsearch.cli import main; main()"
            os.execv(sys.executable, [sys.executable, "-c", code, "teach", *args])

    def read_until(self, wanted):
        """What came up to there; gives up after a minute of silence."""
        while wanted not in self.unread:
            assert self.read(60), f"no {wanted!r} in {self.unread!r}"
        text, _, self.unread = self.unread.partition(wanted)
        return text

    def type_until(self, keys, wanted):
        """Once it is quiet, and again where it was not ready: such keys may be thrown away."""
        for _ in range(6):
            while self.read(0.3):
                pass
            self.type(keys)
            while wanted not in self.unread and self.read(10):
                pass
            if wanted in self.unread:
                return
        raise AssertionError(f"no {wanted!r} in {self.unread!r}")

    def read(self, seconds):
        """Whether anything came in that time."""
        import select

        try:
            is_there = select.select([self.ours], [], [], seconds)[0]
            piece = os.read(self.ours, 1 << 16) if is_there else b""
        except OSError:  # how Linux says that the other side is closed
            piece = b""
        self.unread += piece.decode("utf-8", "replace")
        return bool(piece)

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

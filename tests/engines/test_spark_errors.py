"""What is missing is said before anything starts, in one line."""

import importlib
import socket

import pytest

from qkvsearch.cli import main
from qkvsearch.engines.spark import session
from qkvsearch.errors import DataError, QkvError


@pytest.fixture
def nobody():
    """A port on which nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        yield found.getsockname()[1]


@pytest.fixture
def installed(monkeypatch):
    """As if pyspark and Java were there."""
    monkeypatch.setattr(session, "need", lambda *_: None)
    monkeypatch.setattr(session, "_has_java", lambda: True)


def test_an_unreachable_master_is_named(installed, nobody):
    with pytest.raises(QkvError, match=f"no Spark master answers at 127.0.0.1:{nobody}: start one"):
        session.check_engine(f"spark://127.0.0.1:{nobody}")


def test_one_master_of_several_is_enough(installed, nobody):
    with socket.socket() as there:
        there.bind(("127.0.0.1", 0))
        there.listen()
        session.check_engine(f"spark://127.0.0.1:{nobody},127.0.0.1:{there.getsockname()[1]}")


@pytest.mark.parametrize(
    "engine", ["sparks", "spark://", "spark://here", "http://x:1", "spark://x:0"]
)
def test_what_is_no_engine_is_refused(engine):
    with pytest.raises(QkvError, match="`engine` is spark or spark://HOST:PORT, not"):
        session.check_engine(engine)


def test_a_missing_package_is_named_with_its_command(monkeypatch):
    real = importlib.import_module

    def without(name, *args):
        if name.startswith("pyspark"):
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr("qkvsearch.errors.import_module", without)
    with pytest.raises(QkvError, match=r"needs pyspark: pip install -e '\.\[spark\]'"):
        session.check_engine("spark")


def test_a_missing_java_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(session, "need", lambda *_: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv(session.SUBMITTED, raising=False)
    with pytest.raises(QkvError, match="needs Java 17 or later"):
        session.check_engine("spark")


def test_the_command_says_it_in_one_line(installed, nobody, tmp_path, capsys):
    (tmp_path / "log.csv").write_text("user,item\n1,2\n")
    with pytest.raises(SystemExit) as ended:
        main(["-w", str(tmp_path / "ws"), "build", "--interactions", str(tmp_path / "log.csv"),
              "--engine", f"spark://127.0.0.1:{nobody}"])  # fmt: skip
    said = capsys.readouterr().err
    assert ended.value.code == 1
    assert said.count("\n") == 1
    assert "--engine spark to use" in said
    assert f"127.0.0.1:{nobody}" in said
    assert not (tmp_path / "ws").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["build", "sample:movies", "--engine", "spark"],
        ["build", "--items", "x.csv", "--engine", "spark"],
        ["build", "--interactions", "-", "--engine", "spark"],
    ],
)
def test_a_log_that_is_no_path_is_refused(installed, words, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["-w", str(tmp_path / "ws"), *words])
    assert ended.value.code == 1
    assert "--interactions" in capsys.readouterr().err


def test_the_reason_of_a_failure_is_what_an_executor_raised():
    error = RuntimeError(
        "An error occurred while calling o1.\nTraceback (most recent call last):\n"
        "qkvsearch.errors.DataError: log.csv: no such column\n"
        "org.apache.spark.SparkException: Job aborted"
    )
    assert session.reason_of(error, "spark") == "log.csv: no such column"


def test_what_is_wrong_with_the_data_is_an_error_of_the_data():
    class Failed(Exception):
        __module__ = "pyspark.errors"

    with (
        pytest.raises(DataError, match=r"^log\.csv: a line$"),
        session._errors_in_one_line("spark"),
    ):
        raise Failed("Traceback:\nqkvsearch.errors.DataError: log.csv: a line\n")
    with pytest.raises(QkvError) as caught, session._errors_in_one_line("spark"):
        raise Failed("java.lang.OutOfMemoryError: heap")
    assert type(caught.value) is QkvError

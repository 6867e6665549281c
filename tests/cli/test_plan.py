"""`build --plan` with numbers: an estimate, and nothing is read or written."""

from __future__ import annotations

from click.testing import CliRunner

from qkvsearch.cli import group


def run(*words):
    return CliRunner().invoke(group, words)


def test_numbers_alone_are_estimated():
    found = run("build", "--plan", "--n-items", "60000", "--n-interactions", "100000000")
    assert found.exit_code == 0
    assert "100,000,000 interactions (users, texts assumed)" in found.output
    for word in ("memory", "disk", "time", "advised"):
        assert f"\n  {word} " in found.output


def test_numbers_are_for_a_plan():
    found = run("build", "--n-items", "5")
    assert found.exit_code == 2
    assert "are for --plan" in found.output


def test_numbers_take_the_place_of_what_a_file_tells(tmp_path):
    (tmp_path / "log.csv").write_text("user,item\n1,2\n")
    found = run("build", "--plan", str(tmp_path / "log.csv"), "--n-interactions", "5000000")
    assert "5,000,000 interactions" in found.output
    assert "Nothing was built" not in found.output


def test_files_that_are_read_are_estimated_by_what_is_in_them(tmp_path):
    (tmp_path / "log.csv").write_text("user,item\n1,2\n1,3\n")
    found = run("-w", str(tmp_path / "ws"), "build", "--plan", str(tmp_path / "log.csv"))
    assert "Estimated for 2 items, 1 user, 2 interactions:" in found.output
    assert "Nothing was built" in found.output
    assert not (tmp_path / "ws").exists()

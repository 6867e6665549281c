"""What people trip over at the door: caches, suffixes, misplaced options, signs that steer."""

import gc
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import click
import pytest

from qkvsearch.cli import group
from qkvsearch.cli.context import CommandContext


@pytest.fixture
def samples(monkeypatch, tmp_path, small_sample):
    """Where the samples are kept, empty at first."""
    monkeypatch.setattr(click, "get_app_dir", lambda name: str(tmp_path / name))
    return tmp_path / "qkvsearch" / "samples"


def test_a_sample_that_is_damaged_or_was_interrupted_is_built_again(qkv, samples):
    assert qkv("-w", "sample:videos", "search", "apple").code == 0
    (folder,) = samples.iterdir()
    for array in folder.glob("builds/*/*.npy"):
        array.write_bytes(b"cut")
    assert qkv("-w", "sample:videos", "search", "apple").code == 0
    shutil.rmtree(folder / "builds")
    assert qkv("-w", "sample:videos", "search", "apple").code == 0


def test_a_sample_is_built_once_for_those_who_ask_at_once(samples):
    together = Barrier(3)

    def asked(_):
        with click.Context(group):
            together.wait()
            return CommandContext(None, True, False).open_sample("videos").search("apple")[0].id

    with ThreadPoolExecutor(3) as people:
        assert len(set(people.map(asked, range(3)))) == 1
    (folder,) = samples.iterdir()
    assert len(list(folder.glob("builds/*"))) == 1


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are listed by Linux")
def test_a_command_lets_go_of_its_workspace_when_it_ends(qkv, films_path):
    """And does not leave that to the garbage collector: SQLite waits up to a minute for a lock."""
    gc.disable()
    try:
        assert qkv("-w", films_path, "search", "bread").code == 0
        assert qkv("-w", films_path, "record", "me", "Heat").code == 0
        held = [Path(os.path.realpath(file)) for file in Path("/proc/self/fd").iterdir()]
    finally:
        gc.enable()
    assert not [file for file in held if films_path in file.parents]


def test_samples_answer_where_no_home_can_be_written_to(qkv, monkeypatch, tmp_path, small_sample):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(click, "get_app_dir", lambda name: str(tmp_path / "file" / name))
    assert qkv("-w", "sample:videos", "search", "apple", "-k", 1).code == 0


@pytest.mark.parametrize("name", ["out.tsv", "out.xlsx"])
def test_a_suffix_that_names_no_format_is_wrong_usage(qkv, videos_path, name):
    answer = qkv("-w", videos_path, "search", "bread", "-o", name)
    assert answer.code == 2
    assert "add --format" in answer.stderr
    assert qkv("-w", videos_path, "search", "bread", "-o", name, "--format", "csv").code == 0


def test_a_suffix_in_capitals_names_its_format(qkv, videos_path):
    assert qkv("-w", videos_path, "search", "bread", "-o", "out.CSV").code == 0
    assert Path("out.CSV").read_text(encoding="utf-8").startswith("rank,id,title")


def test_a_dash_is_stdout(qkv, videos_path):
    run = ("-w", videos_path, "search", "bread", "--format", "csv")
    assert qkv(*run, "-o", "-").stdout == qkv(*run).stdout
    assert not Path("-").exists()


def test_an_option_after_the_command_is_told_its_place(qkv):
    answer = qkv("search", "bread", "-w", "ws")
    assert answer.code == 2
    assert "It comes before the command: qkvsearch -w" in answer.stderr


def test_verbose_says_the_workspace_and_the_time(qkv, videos_path):
    answer = qkv("-v", "-w", videos_path, "search", "bread")
    assert f"Workspace: {videos_path}" in answer.stderr
    assert "Took " in answer.stderr

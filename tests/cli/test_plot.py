"""`--plot`: the file it writes, and what is refused before any work."""

import sys
import xml.etree.ElementTree
from html import escape

import pytest

from qkvsearch.engine import Engine


@pytest.fixture
def evaluated(qkv, shop_path):
    """Runs an evaluation of the shop with options."""
    pytest.importorskip("matplotlib", reason="drawing needs the extra [plot]")
    return lambda *options: qkv("-w", shop_path, "evaluate", "recommend", *options)


def test_a_picture_is_written_beside_the_table(evaluated, tmp_path):
    answer = evaluated("--plot", "shop.png")
    assert answer.code == 0
    assert "ndcg" in answer.stdout
    assert (tmp_path / "shop.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert evaluated("--plot", "shop.SVG").code == 0
    assert xml.etree.ElementTree.parse(tmp_path / "shop.SVG").getroot().tag.endswith("svg")


def test_a_page_is_written_with_the_notes(evaluated, tmp_path):
    assert evaluated("--plot", "shop.html", "--format", "json").json()["by_history"]
    page = (tmp_path / "shop.html").read_text(encoding="utf-8")
    assert "<title>Quality of recommendations</title>" in page


def test_a_judged_search_is_drawn(qkv, shop_path, tmp_path):
    pytest.importorskip("matplotlib", reason="drawing needs the extra [plot]")
    (tmp_path / "q.tsv").write_text("q1\tred apple\n", encoding="utf-8")
    (tmp_path / "qrels.txt").write_text("q1 0 1 1\n", encoding="utf-8")
    run = ("-w", shop_path, "evaluate", "search", "--queries", "q.tsv", "--qrels", "qrels.txt")
    assert qkv(*run, "--plot", "search.svg").code == 0
    assert "strong" in (tmp_path / "search.svg").read_text(encoding="utf-8")


def test_made_queries_are_drawn_with_their_examples(qkv, shop_path, tmp_path):
    pytest.importorskip("matplotlib", reason="drawing needs the extra [plot]")
    run = ("-w", shop_path, "evaluate", "search")
    found = qkv(*run, "--plot", "made.html", "--format", "json").json()
    page = (tmp_path / "made.html").read_text(encoding="utf-8")
    for name, figures in found["kinds"].items():
        assert f">{name.replace('_', ' ')}<" in page
        assert f"<td>{figures['queries']}</td>" in page
    assert found["worst"]
    assert all(f"<td>{escape(row['title'], quote=False)}</td>" in page for row in found["worst"])


@pytest.fixture
def no_work(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("it works before it checks --plot")

    monkeypatch.setattr(Engine, "evaluate_recommend", fail)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--plot", "shop.pdf"], ".png, .svg, .html"),
        (["--plot", "shop"], ".png, .svg, .html"),
        (["--plot", "missing/shop.png"], "no folder missing"),
        (["--plot", "a.html", "-o", "a.html", "--format", "json"], "the same file"),
    ],
)
def test_a_file_that_cannot_be_is_refused_before_any_work(evaluated, no_work, options, told):
    answer = evaluated(*options)
    assert (answer.code, answer.stdout) == (2, "")
    assert told in answer.stderr


def test_the_files_of_a_workspace_are_not_replaced(evaluated, no_work, shop_path):
    answer = evaluated("--plot", shop_path / "builds" / "shop.png")
    assert (answer.code, answer.stdout) == (2, "")
    assert "a workspace keeps its data there" in " ".join(answer.stderr.split())


def test_without_matplotlib_one_line_names_the_extra(qkv, shop_path, no_work, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    answer = qkv("-w", shop_path, "evaluate", "recommend", "--plot", "shop.png")
    assert (answer.code, answer.stdout) == (1, "")
    assert "[plot]" in answer.stderr
    assert "--plot needs matplotlib" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1

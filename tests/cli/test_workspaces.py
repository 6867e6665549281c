"""A workspace is named or it is here: a sample answers only where it is named."""

from pathlib import Path

import pytest

from qkvsearch.text.pretrained.static import find_package


def test_attend_needs_no_workspace_and_says_which_encoder_it_uses(qkv, monkeypatch):
    monkeypatch.setattr("qkvsearch.text.encoders.installed", tuple)
    assert "no workspace here" in qkv("attend", "guitar").stderr
    monkeypatch.undo()
    if find_package() is None:
        pytest.skip("needs qkvsearch[encoders]")
    answer = qkv("attend", "guitar", "bass")
    assert (answer.code, "guitar" in answer.stdout) == (0, True)
    assert "No workspace here: using the encoder static (--encoder" in answer.stderr
    assert qkv("-w", "films", "attend", "guitar").code == 1


def test_a_demo_is_the_videos_read_only_where_no_workspace_is_named(qkv, monkeypatch, shop_path):
    server = pytest.importorskip("qkvsearch.web.server", reason="needs qkvsearch[web]")
    served = []
    monkeypatch.setattr(server, "serve", lambda settings, *_: served.append(settings))
    assert qkv("serve", "--demo").code == 0
    assert qkv("-w", shop_path, "serve").code == 0
    demo, own = served
    assert (own.name, own.read_only, own.example_user) == (shop_path.name, False, "")
    assert (demo.name, demo.read_only, demo.example_user) == ("videos", True, "w001")
    answer = qkv("-w", "films", "serve", "--demo")
    assert (answer.code, "leave out -w" in answer.stderr) == (2, True)


def test_pages_call_the_catalog_by_its_file_or_by_title(qkv, monkeypatch):
    server = pytest.importorskip("qkvsearch.web.server", reason="needs qkvsearch[web]")
    served = []
    monkeypatch.setattr(server, "serve", lambda settings, *_: served.append(settings.name))
    Path("Garden tools.csv").write_text("id,title\n1,spade\n2,rake\n", encoding="utf-8")
    assert qkv("-w", "ws", "build", "--items", "Garden tools.csv").code == 0
    for options in ((), ("--title", "Our shop"), ("--title", " ")):
        assert qkv("-w", "ws", "serve", *options).code == 0
    assert served == ["Garden tools", "Our shop", "Garden tools"]


def test_a_sample_can_be_named(qkv):
    answer = qkv("-w", "sample:movies", "recommend", "--user", "u001", "-k", 1)
    assert (answer.code, answer.stderr) == (0, "")
    assert qkv("-w", "sample:videos", "show", "v001").code == 0
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    "args", ["build items.csv", "add items.csv", "remove m001", "record u001 Heat", "tune"]
)
def test_a_sample_stays_as_it_is(qkv, args):
    Path("items.csv").write_text("id,title\n1,a\n")
    answer = qkv("-w", "sample:movies", *args.split())
    assert (answer.code, answer.stdout) == (1, "")
    assert "qkvsearch -w DIR build sample:movies" in answer.stderr


def test_a_sample_that_there_is_not_is_said(qkv):
    answer = qkv("-w", "sample:movie", "items")
    assert answer.code == 1
    assert "no sample 'movie'; there are sample:videos, sample:movies" in answer.stderr

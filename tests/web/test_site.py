"""An exported site: what its files hold gives the engine's scores, and what is written where."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from qkvsearch.cli import main
from qkvsearch.engine import Engine
from qkvsearch.errors import DataError, QkvError
from qkvsearch.limits import Limit
from qkvsearch.web.site import contents, writing
from qkvsearch.web.site.contents import MADE_BY, SiteContents
from qkvsearch.web.site.dictionary import bloom_filter, places
from qkvsearch.web.site.shards import front_coded
from tests.web.conftest import MARKUP
from tests.web.site_reader import Site

QUERIES = [
    line.split("\t")[1]
    for line in (Path(__file__).parents[2] / "datasets" / "queries.tsv")
    .read_text("utf-8")
    .splitlines()
]
HEADS = ["lexical", "lsa", "contrastive"]


@pytest.fixture(scope="module")
def site(exported):
    return Site(exported)


@pytest.fixture(scope="module")
def known(videos, site):
    """Queries of the words that the texts have, and these words as they are spelled."""
    found = {}
    for query in QUERIES:
        tokens = [token.text for token in videos.models.analyzer.query_tokens(query)]
        if words := [token for token in tokens if token in site.lookup_of]:
            found[" ".join(words)] = words
    assert len(found) >= 50
    return found


def test_scores_of_each_head_are_the_engines_within_the_bound_of_rounding(videos, site, known):
    for query, words in known.items():
        heads = site.scores(words)
        assert set(heads) == {name for name in HEADS if videos.head(name, query) is not None}
        for name, (scores, most) in heads.items():
            ours = videos.head(name, query).scores
            assert np.abs(scores - ours).max() <= most < (0.2 if name != "lexical" else 1e-3)


def test_the_best_ten_are_the_engines(videos, site, known):
    shared = []
    for query, words in known.items():
        own = videos.search(query, heads=HEADS, anyway=True).positions.tolist()
        shared.append(len(set(own) & set(site.best(words))) / len(own))
    assert np.mean(shared) >= 0.97


def test_words_are_found_in_forms_that_no_text_has(videos, site):
    spelled = set(videos.models.words.spellings.tolist())
    forms = [word for word in site.words if word.encode() not in spelled and len(word) > 3]
    assert len(forms) > 1000
    for word in forms[::500]:
        items, _, _ = site.found(site.lookup_of[word])
        (token,) = videos.models.analyzer.tokens(word)
        assert set(videos.models.lexical_keys.postings(token.term)[0]) <= set(items.tolist())


def test_items_are_there_with_their_cells(videos, site):
    rows = [
        row
        for number in range(-(-site.n_items // site.facts["shard_items"]))
        for row in json.loads(site._data(f"items/{number}.json"))
    ]
    ids, titles = videos.tables.names(range(videos.n_items))
    assert [row[:2] for row in rows] == [list(pair) for pair in zip(ids, titles, strict=True)]
    assert site.facts["fields"] == ["description", "tags"]


def test_a_dictionary_knows_its_words_and_few_others():
    words = [f"word{chr(97 + i % 26)}{i}" for i in range(1000)]
    content = bloom_filter(words)
    bits = np.unpackbits(np.frombuffer(content, np.uint8), bitorder="little").astype(bool)
    assert bits[places(words, len(bits))].all()
    others = [f"other{i}" for i in range(1000)]
    assert bits[places(others, len(bits))].all(axis=1).mean() < 0.05
    assert places(["sea"], 64).tolist() == places(["sea", "longer"], 64)[:1].tolist()


def test_words_beyond_the_basic_plane_are_not_cut_in_two():
    words = ["\U00020000a", "\U00020000b"]
    lines = front_coded(words).decode().split("\n")
    assert [line[0] for line in lines] == [" ", " "]


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.addresses, self.scripts, self.styles = [], [], []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.addresses += [found[name] for name in ("href", "src") if name in found]
        if tag == "script":
            self.scripts.append(found)
        self.styles += [tag] * (tag == "style" or "style" in found)


def test_a_page_runs_nothing_inline_and_links_to_its_own_folder_alone(exported):
    text = (exported / "index.html").read_text("utf-8")
    found = Links()
    found.feed(text)
    assert not found.styles
    assert all(s.get("type") == "application/json" or "src" in s for s in found.scripts)
    for address in found.addresses:
        assert address.startswith("#") or (exported / address).is_file(), address
    assert "default-src &#x27;none&#x27;; script-src &#x27;self&#x27;" in text
    assert "<b>" not in text
    assert "&lt;b&gt;Videos" in text
    assert "<!DOCTYPE html>" in (exported / "course.html").read_text("utf-8")[:100]


@pytest.fixture
def quick(monkeypatch):
    """Pages and data that take no time to be made."""
    made = SimpleNamespace(files={"data/x": b"x"}, facts={"made_by": MADE_BY}, notes=[])
    monkeypatch.setattr(writing, "SiteContents", lambda *_: made)
    monkeypatch.setattr(writing, "site_pages", lambda title: {"index.html": title.encode()})


def test_a_site_takes_the_place_of_itself_and_of_nothing_else(videos, tmp_path, quick):
    writing.export_site(videos.build, tmp_path / "out", title="one")
    stale = tmp_path / "out" / "stale"
    stale.write_text("of the former one")
    writing.export_site(videos.build, tmp_path / "out", title="two")
    assert (tmp_path / "out" / "index.html").read_text() == "two"
    assert not stale.exists()
    (tmp_path / "empty").mkdir()
    writing.export_site(videos.build, tmp_path / "empty")
    own = tmp_path / "own"
    own.mkdir()
    (own / "site.json").write_text('{"mine": 1}')
    with pytest.raises(DataError, match="no site that was exported"):
        writing.export_site(videos.build, own)
    (own / "site.json").write_text("[]")
    with pytest.raises(DataError, match="no site that was exported"):
        writing.export_site(videos.build, own)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "out", "own"]


def test_what_fails_leaves_the_former_site(videos, tmp_path, quick, monkeypatch):
    out = tmp_path / "out"
    writing.export_site(videos.build, out, title="one")
    monkeypatch.setattr(Path, "write_bytes", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(DataError, match="cannot write"):
        writing.export_site(videos.build, out, title="two")
    assert (out / "index.html").read_text() == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_data_are_named_by_what_they_hold(videos, exported):
    def made(fields):
        return SiteContents(videos.build, fields, lambda *_: None)

    facts = json.loads((exported / "site.json").read_bytes())
    assert made("description,tags").folder == facts["data"] != made("").folder


def test_more_items_than_a_page_can_hold_are_refused(videos, tmp_path, monkeypatch):
    monkeypatch.setattr(contents, "SITE_ITEMS", Limit("items of an exported site", 374))
    with pytest.raises(QkvError, match="more than 374 items of an exported site are refused"):
        writing.export_site(videos.build, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_says_what_it_wrote(videos_path, tmp_path, quick, capsys):
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as ended:
        main(["-w", str(videos_path), "export", "site", str(out), "--title", "Mine"])
    assert ended.value.code == 0
    said = "".join(capsys.readouterr())
    assert "375 items, 3 files" in said
    assert "before a word is typed" in said
    assert (out / "index.html").read_text() == "Mine"


def test_titles_that_are_no_titles_are_cut_and_kept_as_text(hostile_path):
    with Engine(hostile_path) as engine:
        made = SiteContents(engine.build, "kind,price", lambda *_: None)
    rows = json.loads(made.files[f"{made.folder}/items/0.json"])
    assert MARKUP in [row[1] for row in rows]
    assert max(len(cell) for row in rows for cell in row if isinstance(cell, str)) == 400
    assert any("cut" in note for note in made.notes)

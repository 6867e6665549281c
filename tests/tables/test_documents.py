"""Folders of documents: one item a file, whatever is in the files."""

import json
import sys

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import DataError
from qkvsearch.learn.add import remove_items
from qkvsearch.store import Workspace
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.dataset import load, read_dataset
from qkvsearch.tables.documents.markdown_files import read_markdown
from qkvsearch.tables.documents.web_pages import read_page
from qkvsearch.tables.sources import read_source

CHINESE, GERMAN = "今天我们谈谈港口的历史，还有那些船", "Die Brücke über den Fluß – schön"
VTT = "WEBVTT\n\n00:10:17.000 --> 00:10:19.500\n<v Ann>The bell was raised.\n"
TALKS = {
    "harbour.vtt": VTT,
    "bridges.srt": "1\n00:00:01,000 --> 00:00:02,000\nSeven cables\n",
    "garden.txt": "First.\n\nThe quince flowers.",
    "kilns.md": "---\ntitle: Kilns\nspeaker: Tomas Reid\nyear: 1987\n---\n\n## Fuel\n\nPeat.",
    "mills.md": "# Water mills\n\nOtters.",
    "tides.html": "<title>Tides</title><h1>Waves</h1><p>Pilots count.",
}


@pytest.fixture
def talks(tmp_path):
    return folder(tmp_path / "talks", TALKS)


def folder(path, files):
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows(source, **columns):
    table, report = load(str(source), "items", Columns(**columns))
    frame = table.frame()
    return frame.set_index("id"), report


def test_a_folder_is_an_item_a_file(talks):
    catalog = read_source(items=f"{talks}/").catalog
    items = catalog.frame.set_index("id")
    assert sorted(items.index) == ["bridges", "garden", "harbour", "kilns", "mills", "tides"]
    titles = items.loc[["kilns", "mills", "tides", "harbour"], "title"]
    assert list(titles) == ["Kilns", "Water mills", "Tides", "harbour"]
    assert items.year["kilns"] == 1987
    assert items.text["harbour"] == "Ann: The bell was raised."
    assert json.loads(items.text_times["harbour"]) == [[0, 617, 619.5]]
    assert "text" in catalog.text_columns


def test_the_files_of_a_workspace_in_the_folder_are_no_data(tmp_path):
    notes = {f"{name}.md": f"# {name}\n\nOtters and {name}." for name in ("mills", "kilns")}
    path = folder(tmp_path / "talks", notes)
    alone, _ = rows(path)
    for _ in range(2):
        qkv.build(path, items=f"{path}/").close()
    (path / "records.db").touch()
    frame, report = rows(path)
    assert frame.equals(alone)
    assert not any("left out" in note for note in report.notes)
    assert list(rows(f"{path}/**/*.[mj]*")[0].index) == list(alone.index)
    with pytest.raises(DataError, match="no file matches"):
        rows(f"{path}/*.json")
    with pytest.raises(qkv.QkvError, match=r"builds, .*root.json.*; leave kilns.md, mills.md in"):
        remove_items(Workspace(path), where="title != 'x'")


def test_a_pattern_a_file_and_a_source_are_read_alike(talks):
    assert list(rows(talks / "*.md")[0].index) == ["kilns", "mills"]
    assert list(rows(talks / "harbour.vtt")[0].index) == ["harbour"]
    assert len(read_source(str(talks)).catalog) == 6
    several, report = load([str(talks / "*.md"), str(talks / "tides.html")], "items")
    assert (len(several), report.unit) == (3, "file")
    with pytest.raises(DataError, match="named twice"):
        load([str(talks), str(talks / "mills.md")], "items")


def test_a_workspace_is_built_of_a_folder_and_one_is_added(talks, tmp_path):
    engine = qkv.build(tmp_path / "w", items=talks, encoder="corpus")
    assert engine.search("otters", k=1)[0].id == "mills"
    more = folder(tmp_path / "more", {"wells.md": "# Wells\n\nThe deepest one is dry."})
    assert engine.add(more).added == 1
    assert engine.search("deepest", k=1)[0].id == "wells"


def test_ids_have_a_suffix_or_a_folder_where_they_would_be_the_same(tmp_path):
    names = ["a.md", "a.txt", "b.en.srt", "b.de.srt", "x/index.md", "y/index.md", ".git/c.md"]
    srt = "00:01 --> 00:02\nhi"
    path = folder(tmp_path / "d", {name: srt if "srt" in name else "text" for name in names})
    found = set(rows(path)[0].index)
    assert found == {"a.md", "a.txt", "b.en", "b.de", "x/index.md", "y/index.md"}


def test_front_matter_is_columns_as_it_is_written(tmp_path):
    files = {
        "a.md": "---\nid: 7\ntext: note\nsku: 007\ndate: 1987-03-01\ntags: [x, ~, [], y]\n"
        "author: {name: Ann, died: ~}\nmakers: [{name: Bo}, {name: Cy}]\n"
        "empty:\ndraft: no\n---\nBody",
        "b.md": "---\ntitle: Ferries: a history\n---\nOther",
        "c.md": "---\n\nA line above.\n\n---\n\nBelow.",
    }
    found, report = rows(folder(tmp_path / "d", files))
    first = found.loc["a", ["id.1", "text.1", "sku", "date", "tags", "author.name", "draft"]]
    assert list(first) == ["7", "note", "007", "1987-03-01", "x|y", "Ann", "no"]
    assert found.loc["a", "makers.name"] == "Bo|Cy"
    assert not {"empty", "author", "author.died"} & set(found)
    assert found.loc["b", ["title", "text"]].tolist() == ["Ferries: a history", "Other"]
    assert found.text["c"] == "A line above.\n\nBelow."
    assert any("not YAML" in note for note in report.notes)


@pytest.mark.parametrize("suffix", ["md", "txt", "html"])
@pytest.mark.parametrize(
    ("lines", "tags", "is_yaml"),
    [
        ("tags:\n\t- old\n\t- wood", "old|wood", False),
        ("tags:\n  - old\n  wood", "old|wood", False),
        ("tags:\n- old\n  oak\n- wood: pine: red", "old oak|wood: pine: red", False),
        ("tags: old: and\n  wood # both", "old: and wood # both", False),
        ("tags: [old, wood]\n ", "old|wood", True),  # the line of hyphens below is indented
    ],
)
def test_front_matter_that_people_write_is_read(tmp_path, suffix, lines, tags, is_yaml):
    text = f"\n---\ntitle: Mills\n{lines}---\nBody.\n"
    if lines[-1] != " ":
        text = f"---\ntitle: Mills\n{lines}\nprice: 12\n---\nBody.\n"
    found, report = rows(folder(tmp_path / "d", {f"a.{suffix}": text}))
    assert found.loc["a", ["title", "tags", "text"]].tolist() == ["Mills", tags, "Body."]
    assert any("not YAML" in note for note in report.notes) != is_yaml
    assert not report.warnings


@pytest.mark.parametrize("text", ["---\ntitle: A\nBody.", "---\ntitle: A\nBody\n---\nBody."])
def test_front_matter_that_cannot_be_read_is_text_with_a_warning(tmp_path, text):
    found, report = rows(folder(tmp_path / "d", {"a.md": text, "b.md": "---\nBody.\n---\nx"}))
    assert found.text["a"].startswith("title: A")
    assert ["a.md" in warning for warning in report.warnings] == [True]


@pytest.mark.parametrize("front", ["title: Ash\ntitle: Oak", "title: Ash\nTitle: Oak: a tree"])
def test_of_a_key_that_is_there_twice_the_first_counts_with_a_warning(tmp_path, front):
    found, report = rows(folder(tmp_path / "d", {"a.md": f"---\n{front}\n---\nBody."}))
    assert found.title["a"] == "Ash"
    assert ["a.md" in warning and "title" in warning for warning in report.warnings] == [True]


def test_front_matter_that_would_fill_the_memory_is_refused(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    bomb = "---\n{}\n---\nx"
    files = {"a.md": bomb.format("\n".join(lines)), "b.md": bomb.format("a: &x [*x]"), "c.md": "c"}
    found, report = rows(folder(tmp_path / "d", files))
    assert list(found.index) == ["b", "c"]
    assert report.skipped.total() == 1


def test_markdown_is_text_without_addresses():
    document = read_markdown(
        "Intro [a](https://x.org/1) <https://y.org> https://z.org/2 ![pic](p.png)\nmore\n\n"
        "## Second\n\n- one\n- two\n\n**Ann:** hi `<b>` &amp; \\[03:52\\]\n\n|h|\n|-|\n|c|\n\n"
        "[ref]: https://w.org\n"
    )
    assert document.title == "Second"
    paragraphs = ["Intro a pic more", "Second", "one\ntwo", "Ann: hi < b> & [03:52]", "h\nc"]
    assert document.text == "\n\n".join(paragraphs)


def test_scripts_styles_and_navigation_of_a_page_are_no_text():
    document = read_page(
        "<!doctype html><html><head><style>p{}</style><script>magenta</script></head><body>"
        "<nav>Home</nav><div class='main menu'>About</div><div role=navigation>Up</div>"
        "<h1>Tides &amp; <em>wa</em>ves</h1><p>One<br>two<noscript>no</noscript></p>"
        "<ul><li>a<li>b</ul><svg><title>t</title></svg><template>t</template><p hidden>h</p>"
    )
    assert document.title == "Tides & waves"
    assert document.text == "Tides & waves\n\nOne\ntwo\n\na\nb"
    deep = read_page("<div>" * 2_000 + "deep")
    assert deep.text == "deep"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<header><h1>Site</h1></header>{}<aside>Buy</aside><footer>Imprint</footer>", "Bread"),
        ("<article><header>{}</header>Knead<footer>Ann</footer></article>", "Bread\n\nKnead"),
        (
            "<div role=main><header>Kept</header>{}</div><div role=banner>Site</div>",
            "Kept\n\nBread",
        ),
        ("{}<form><p>Subscribe</p></form><div class='site-footer'>Imprint</div>", "Bread"),
        ("<form id=aspnetForm>{}<p>Rye<input></form>", "Bread\n\nRye"),
        (
            "{}<div id=onetrust-banner-sdk>Cookies</div><div class='js-cookie-consent'>OK</div>",
            "Bread",
        ),
        ("<div class=cookie-recipe>{}</div>", "Bread"),
        ("<footer>{}</footer>", "Bread"),
    ],
)
def test_only_the_main_text_of_a_page_is_read(body, text):
    assert read_page(f"<body>{body.format('<p>Bread</p>')}</body>").text == text


def test_a_form_with_much_of_a_page_is_left_out_and_counted():
    form = "<form><p>Names, places and dates of the people who may take part</p></form>"
    page = read_page(f"<body><p>{'Bread and butter. ' * 10}</p>{form}<form>Search</form></body>")
    assert "people" not in page.text
    assert page.notes == {"forms with more than a fifth of a page's text left out": 1}


@pytest.mark.parametrize(
    ("name", "content", "right"),
    [
        ("a.srt", ("\ufeff1\r\n00:01 --> 00:02\r\nÜber\r\n").encode(), "Über"),
        ("a.vtt", f"WEBVTT\n\n00:01.000 --> 00:02.000\n{CHINESE}\n".encode("gbk"), CHINESE),
        ("a.txt", GERMAN.encode("cp1252"), GERMAN),
        ("a.md", "Café".encode("utf-16"), "Café"),
        ("a.html", "<meta charset=big5><p>港口的歷史".encode("big5"), "港口的歷史"),
    ],
)
def test_files_of_any_encoding_are_read(tmp_path, name, content, right):
    assert rows(folder(tmp_path / "d", {name: content}))[0].text["a"] == right


def test_files_that_cannot_be_read_are_named_and_the_others_are_built(talks):
    folder(talks, {"bad.srt": "no times", "empty.md": "", "x.txt": b"%PDF-1.4 x", "pic.png": b"x"})
    found, report = rows(talks)
    assert len(found) == 6
    assert report.skipped.total() == 3
    warnings = "\n".join(report.warnings)
    assert all(name in warnings for name in ("bad.srt", "empty.md", "x.txt"))
    assert "pic.png" in report.notes[0]
    (talks / "bad.srt").unlink()
    with pytest.raises(DataError, match=r"bad\.srt"):
        rows(folder(talks.parent / "none", {"bad.srt": "no times"}))


def test_files_without_words_and_with_broken_times_are_counted_and_named(talks):
    sounds = "1\n00:00:01,000 --> 00:00:03,000\n[Music]\n"
    broken = (
        "1\n00:00:01,000 --> 00:00:03,000\nHello\n\n2\n00:00:xx --> 00:00:05,000\nboats\n\n"
        "3\n00:00:09,000 --> 00:00:10,000\nBye\n"
    )
    front = "---\ntitle: Locks\nspeaker: Ann\n---\n"
    nothing = "<html><body><nav>Home</nav></body></html>"
    files = {"music.srt": sounds, "half.srt": broken, "front.md": front, "nav.html": nothing}
    found, report = rows(folder(talks, files))
    assert found.text["half"] == "Hello boats Bye"
    assert json.loads(found.text_times["half"]) == [[0, 1, 3], [12, 9, 10]]
    assert found.speaker["front"] == "Ann"
    assert not {"music", "nav"} & set(found.index)
    assert report.skipped.total() == 2
    warnings = "\n".join(report.warnings)
    assert all(name in warnings for name in ("music.srt", "nav.html", "half.srt"))


def test_a_folder_of_tables_or_of_nothing_is_an_error(tmp_path):
    tables = {"a.csv": "id,title\n1,a\n", "b.csv": "id,title\n2,b\n", "README.md": "# About"}
    with pytest.raises(DataError, match=r"a\.csv.*\*\.csv"):
        rows(folder(tmp_path / "tables", tables))
    with pytest.raises(DataError, match="no file in this folder"):
        rows(folder(tmp_path / "other", {"a.png": "x"}))
    known = folder(tmp_path / "ml", {"ratings.csv": "userId,movieId,rating\n1,1,5\n", "a.md": "x"})
    with pytest.raises(DataError, match="MovieLens"):
        read_source(str(known))


def test_texts_that_are_tables_stay_tables(tmp_path):
    files = {"a.txt": "id,title\n1,red\n", "b.txt": "id,title\n2,blue\n"}
    path = folder(tmp_path / "d", files)
    assert list(rows(path / "*.txt")[0].title) == ["red", "blue"]
    assert list(rows(path / "a.txt")[0].title) == ["red"]


TEXTS = [
    "One line, on kilns.",
    "Kilns\n\nThe kiln burns peat.\n",
    "Kilns\nClay, sand, ash\n陶器, 茶壶, 窑\nGlaze, salt, lead\n",
    "Le four brûle; il fume.\nLe potier dort; il rêve.\n",
    "[Music]\nIt cost 10 pounds.\n",
    "1,000 kilns\nSome burn peat.\n",
    "Clay,ash\nThen fire.\n",
    "茶壶很好,我买了。\n碗,杯,盘。\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_is_named_itself_is_one_document(tmp_path, text):
    path = folder(tmp_path / "more", {"note.txt": text}) / "note.txt"
    catalog, report = rows(path)
    assert list(catalog.index) == ["note"]
    assert catalog.text["note"].split() == text.split()
    assert any("title_column" in note for note in report.notes)


@pytest.mark.parametrize(
    "text",
    [
        "sku;price\na;1,50\nb;2,50\n",
        "code, name\na, Vase\nb, Bowl\n",
        "title\nVase\nBowl\n",
        "Prices in May\nsku\tprice\na\t1\nb\t2\n",
        "编号,名称\na,茶壶\nb,碗\n",
        '{"id": "a"}\n{"id": "b"}\n',
    ],
)
def test_a_text_with_names_of_columns_is_a_table(tmp_path, text):
    path = folder(tmp_path / "more", {"note.txt": text}) / "note.txt"
    assert len(read_dataset(path, None).catalog.ids.texts) == 2


def test_a_named_column_makes_a_text_a_table(tmp_path):
    path = folder(tmp_path / "more", {"note.txt": "Ware\nVase\nBowl\n"}) / "note.txt"
    catalog = read_dataset(path, None, Columns(title="Ware")).catalog
    assert list(catalog.frame["title"]) == ["Vase", "Bowl"]


@pytest.mark.parametrize(
    ("name", "library", "extra"),
    [
        ("a.vtt", "pysubs2", "subtitles"),
        ("a.md", "markdown_it", "markdown"),
        ("a.html", "selectolax.lexbor", "html"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(tmp_path, monkeypatch, name, library, extra):
    monkeypatch.setitem(sys.modules, library, None)
    path = folder(tmp_path / "d", {name: VTT, "b.txt": "text"})
    with pytest.raises(DataError, match=rf"a\..*\[{extra}\]"):
        rows(path)


# --- beside a table ---


@pytest.fixture
def listed(tmp_path):
    folder(tmp_path / "t", {"a1.vtt": VTT, "b2.vtt": VTT.replace("bell", "anchor")})
    table = "id,title,text\na1,First,own\nb2,Second,\nc3,Third,\n../t/a1,Fourth,\n"
    (tmp_path / "talks.csv").write_text(table)
    return tmp_path


def test_a_row_without_a_text_lacks_a_file_or_a_cell_or_is_outside(listed, monkeypatch):
    monkeypatch.chdir(listed)
    files = ["a1", None, "", "zz", "../../etc/passwd"]
    frame = pd.DataFrame({"id": range(5), "title": [*"vwxyz"], "file": files})
    reasons = (
        "no t/zz.vtt, 2 with no 'file', not read, being outside the folder: t/../../etc/passwd.vtt"
    )
    _, report = load(frame, "items", Columns(texts="t/{file}.vtt"))
    assert f"4 rows without a text: {reasons}" in report.notes
    with pytest.raises(DataError) as error:
        load(frame[1:], "items", Columns(texts="t/{file}.vtt"))
    assert reasons in str(error.value)


def test_texts_join_a_table_by_id(listed):
    found, report = rows(listed / "talks.csv", texts=f"{listed}/t/{{id}}.vtt")
    assert list(found.title) == ["First", "Second", "Third", "Fourth"]
    assert found.text["b2"] == "Ann: The anchor was raised."
    assert json.loads(found.text_times["a1"])[0][1] == 617
    assert found.loc[["c3", "../t/a1"], "text"].isna().all()
    assert found["text.1"]["a1"] == "own"
    assert any("2 rows without a text" in note for note in report.notes)
    frame = pd.DataFrame({"id": ["b2", "c3"], "title": ["x", "y"], "file": ["a1", None]})
    _, report = load(frame, "items", Columns(texts=f"{listed}/t/{{file}}.vtt"))
    assert "1 row without a text: 1 with no 'file'" in report.notes
    frame = pd.DataFrame({"id": ["b2"], "title": ["x"], "file": ["a1"]})
    joined, _ = load(frame, "items", Columns(texts=f"{listed}/t/{{file}}.v*"))
    assert joined.frame().text.tolist() == ["Ann: The bell was raised."]


@pytest.mark.parametrize("pattern", ["t/x.vtt", "t/{id}", "t/{id}.srt", "t/{place}.vtt"])
def test_a_pattern_of_texts_that_fits_no_row_is_refused(listed, pattern):
    with pytest.raises(DataError, match="texts"):
        rows(listed / "talks.csv", texts=f"{listed}/{pattern}")


def test_texts_of_items_that_are_not_given_are_refused(listed, talks):
    texts = Columns(texts="t/{id}.vtt")
    log = pd.DataFrame({"user": ["ann"], "item": ["a1"]})
    with pytest.raises(DataError, match="texts"):
        read_source(interactions=log, columns=texts)
    with pytest.raises(DataError, match="texts"):
        read_source(log, columns=texts)
    with pytest.raises(DataError, match="these items are files"):
        read_source(items=str(talks), columns=texts)

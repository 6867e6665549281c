"""Files as they come: each is read, or named in a sentence that says what to do."""

from __future__ import annotations

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from qkvsearch.data.files.tables import read_table
from qkvsearch.data.readers import read_dataset
from qkvsearch.data.sources import read_source
from qkvsearch.errors import DataError
from qkvsearch.limits import CELL

ITEMS = "id,title\nm1,kettle\nm2,anchor\n"
LOG = "user,item,rating\nann,m1,4\nbob,m2,2\n"


@pytest.fixture
def build(qkv, tmp_path):
    """Builds from files written here, given by their content, and checks how that ended."""

    def run(code=0, said=(), name="items.csv", log=None, **contents):
        items = contents.get("items", ITEMS)
        for file, content in ((name, items), ("log.csv", log)):
            if content is not None:
                data = content if isinstance(content, bytes) else content.encode()
                (tmp_path / file).write_bytes(data)
        options = [] if log is None else ["--interactions", "log.csv"]
        answer = qkv("-w", "ws", "build", "--items", name, *options)
        assert (answer.code, answer.stdout) == (code, ""), answer.stderr
        assert "Traceback" not in answer.stderr
        for words in [said] if isinstance(said, str) else said:
            assert words in answer.stderr
        return answer.stderr

    return run


@pytest.fixture
def titles(qkv):
    """What the workspace holds after a build."""

    def look():
        from qkvsearch.workspace import Workspace

        return [title for _, title, *_ in Workspace("ws").open().tables.cells()]

    return look


@pytest.mark.parametrize("name", ["items.csv", "items.tsv", "items.jsonl", "items.parquet"])
def test_an_empty_file_is_said_to_be_empty(build, name):
    build(1, f"{name}: the file is empty", name=name, items="")


@pytest.mark.parametrize(
    ("name", "items"),
    [("items.csv", "id,title\n"), ("items.csv", "id,title"), ("items.json", "[]")],
)
def test_a_header_only_is_no_catalog(build, name, items):
    build(1, f"{name}: there are no rows in it, or only a header", name=name, items=items)


def test_a_log_of_a_header_only_is_no_log(build):
    build(1, "log.csv: there are no rows in it, or only a header", log="user,item,rating\n")


def test_a_file_of_blank_lines_is_no_table(build):
    build(1, "items.csv: not a table: no line has anything in it", items="\n\n \n")


@pytest.mark.parametrize(
    ("name", "items"), [("items.csv", "id^title\nm1^kettle\n"), ("items.tsv", ITEMS)]
)
def test_a_wrong_delimiter_guessed_is_said_where_a_column_is_missing(build, name, items):
    build(1, (f"{name}: ", "With one column the delimiter may be another"), name=name, items=items)


def test_a_wrong_delimiter_told_is_said_where_a_column_is_missing(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text(ITEMS)
    with pytest.raises(DataError, match=r"items\.csv: .*the delimiter may be another"):
        read_dataset(read_table(path, delimiter=";"), None)


def test_a_column_that_is_told_and_not_there_because_of_the_delimiter_says_so(qkv, tmp_path):
    (tmp_path / "items.csv").write_text("id^title\nm1^kettle\n")
    answer = qkv("build", "--items", "items.csv", "--id-column", "id")
    assert answer.code == 1
    assert "no column 'id'" in answer.stderr
    assert "the delimiter may be another" in answer.stderr


def test_mixed_encodings_are_read_line_by_line_and_counted_as_repaired(build, titles):
    items = "id,title\n1,café\n".encode() + "2,naïve\n3,plain\n".encode("cp1252")
    build(said="3 rows read = 3 kept + 0 merged + 0 skipped; 1 repaired", items=items)
    assert titles() == ["café", "naïve", "plain"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_part_of_the_first_column(build, titles, encoding):
    build(said="2 rows read = 2 kept", items=ITEMS.encode(encoding))
    assert titles() == ["kettle", "anchor"]


def test_quotes_across_lines_hold_one_title(build, titles):
    build(items='id,title\n1,"a kettle\non a ""stove"""\n2,anchor\n')
    assert titles() == ['a kettle\non a "stove"', "anchor"]


def test_a_quote_that_is_never_closed_names_its_row_and_says_what_to_do(build):
    items = 'id,title\n1,kettle\n2,"anchor\n3,rope\n'
    build(1, ("items.csv: not a table: row 3, the header counted", "close it"), items=items)


def test_bad_json_names_the_line(build):
    items = '{"id": 1, "title": "kettle"}\n{"id": 2, "title": anchor}\n'
    build(1, "items.jsonl, line 2: not JSON", name="items.jsonl", items=items)


def test_ids_that_are_numbers_in_one_file_and_text_in_the_other_are_the_same(build):
    items = '{"id": 7, "title": "kettle"}\n{"id": 8, "title": "anchor"}\n'
    log = 'user,item\nann,"7"\nbob,8.0\nbob,7.0\n'
    text = build(name="items.jsonl", items=items, log=log.replace('"7"', "7.0"))
    assert "log.csv: 3 rows read = 3 kept" in text


def test_ids_that_are_written_differently_are_shown_side_by_side(build):
    said = ("no usable rows", "its items look like '1', those of the catalog like 'm1'")
    build(1, said, log="user,item\nann,1\nbob,2\n")


def test_an_id_missing_from_the_catalog_is_counted(build):
    text = build(log=f"{LOG}bob,m3,5\n")
    reason = "1 with an item that is not in the catalog, first row 4"
    assert f"3 rows read = 2 kept + 0 merged + 1 skipped ({reason})" in text


def test_a_missing_file_and_a_folder_are_named(qkv, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for name, said in (("gone.csv", "no such file"), ("folder.csv", "not a file")):
        answer = qkv("build", "--items", name)
        assert (answer.code, f"{name}: {said}" in answer.stderr) == (1, True)


@pytest.mark.skipif(os.name == "nt", reason="modes do not keep Windows from reading")
def test_a_file_that_may_not_be_read_is_named(without_privileges):
    with TemporaryDirectory() as folder:  # not tmp_path, whose parents are its owner's alone
        Path(folder).chmod(0o755)
        path = Path(folder) / "items.csv"
        path.write_text(ITEMS)
        path.chmod(0)
        refused = pytest.raises(DataError, match=r"items\.csv: cannot read: Permission denied")
        with without_privileges(), refused:
            read_table(path)


class TestLongLines:
    """Lines of 100 MB end in seconds, each in a result that is said or an error that names it."""

    LONG = 100_000_000

    def test_a_cell_of_100_mb_is_skipped_and_counted(self, build, titles):
        items = b"id,title\n1," + b"word " * (self.LONG // 5) + b"\n2,anchor\n"
        text = build(items=items)
        assert (
            f"1 skipped (1 with a cell of more than {CELL.most:,} characters, first row 2)" in text
        )
        assert titles() == ["anchor"]

    def test_a_first_line_of_100_mb_is_no_header(self, build):
        text = build(1, items=b"x" * self.LONG + b"\n1,kettle\n")
        assert "items.csv: not a table: the first line has to name the columns" in text
        assert len(text) < 500


def test_rows_of_the_youtube_files_are_read_merged_repaired_and_skipped_and_sum():
    folder = os.environ.get("QKVSEARCH_DATA")
    files = sorted(Path(folder).glob("youtube/*videos*.csv")) if folder else []
    if not files:
        pytest.skip("QKVSEARCH_DATA names no folder with youtube")
    for file in files:
        line = str(read_source(file).reports[0]).replace(",", "")
        counts = {name: int(n) for n, name in re.findall(r"(\d+) (rows|kept|merged|skipped)", line)}
        assert counts.pop("rows") == sum(counts.values()) > 0
        assert counts["merged"] > counts["kept"] > 0

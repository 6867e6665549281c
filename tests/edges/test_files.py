"""Files as they come: each is read, or named in a sentence that says what to do."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from qkvsearch._utils.limits import CELL
from qkvsearch.errors import DataError
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.files.tables import read_table

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
        from qkvsearch.store import Workspace

        return [title for _, title, *_ in Workspace("ws").open().catalog.all_cells()]

    return look


@pytest.mark.parametrize(
    ("name", "items"),
    [("items.csv", "id,title\n"), ("items.csv", "id,title"), ("items.json", "[]")],
)
def test_a_header_only_is_no_catalog(build, name, items):
    build(1, f"{name}: there are no rows in it, or only a header", name=name, items=items)


def test_a_log_of_a_header_only_is_no_log(build):
    build(1, "log.csv: there are no rows in it, or only a header", log="user,item,rating\n")


def test_a_wrong_delimiter_guessed_is_said_where_a_column_is_missing(build):
    said = ("items.csv: ", "With one column the delimiter may be another")
    build(1, said, items="id^title\nm1^kettle\n")


def test_a_file_with_commas_that_is_named_as_one_with_tabs_is_read_and_that_is_said(build, titles):
    build(0, "no '\\t' in its first line, so read with ','", name="items.tsv")
    assert titles() == ["kettle", "anchor"]


def test_a_delimiter_that_is_in_no_line_is_said_to_be_none(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text(ITEMS)
    dataset = read_dataset(path, None, Columns(delimiter=";"))
    assert len(dataset.catalog) == 2
    assert "no ';' in its first line, so read with ','" in str(dataset.reports[0])


def test_a_column_that_is_told_and_not_there_because_of_the_delimiter_says_so(qkv, tmp_path):
    (tmp_path / "items.csv").write_text("id^title\nm1^kettle\n")
    answer = qkv("build", "--items", "items.csv", "--id-column", "id")
    assert answer.code == 1
    assert "no column 'id'" in answer.stderr
    assert "the delimiter may be another" in answer.stderr


def test_ids_that_are_numbers_in_one_file_and_text_in_the_other_are_the_same(build):
    items = '{"id": 7, "title": "kettle"}\n{"id": 8, "title": "anchor"}\n'
    log = 'user,item\nann,"7"\nbob,8.0\nbob,7.0\n'
    text = build(name="items.jsonl", items=items, log=log.replace('"7"', "7.0"))
    assert "log.csv: 3 rows read: 3 kept" in text


def test_ids_that_are_written_differently_are_shown_side_by_side(build):
    said = ("no usable rows", "its items look like '1', those of the catalog like 'm1'")
    build(1, said, log="user,item\nann,1\nbob,2\n")


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


@pytest.mark.parametrize(
    "length", [2 * CELL.default, pytest.param(10 * CELL.default, marks=pytest.mark.slow)]
)
class TestLongLines:
    """Lines of 100 MB end in seconds, each in a result that is said or an error that names it."""

    @pytest.mark.slow
    def test_a_long_cell_is_skipped_and_counted(self, build, titles, length):
        items = b"id,title\n1," + b"word " * (length // 5) + b"\n2,anchor\n"
        text = build(items=items)
        assert (
            f"1 skipped (1 with a cell of more than {CELL.value:,} characters, first row 2)" in text
        )
        assert titles() == ["anchor"]

    @pytest.mark.slow
    def test_a_long_first_line_is_no_header(self, build, length):
        text = build(1, items=b"x" * length + b"\n1,kettle\n")
        assert "items.csv: more than 1,000 characters of a column's name are refused" in text
        assert len(text) < 500

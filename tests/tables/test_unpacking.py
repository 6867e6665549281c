"""Where tables come from: packed files, archives, standard input and pipes, told by content."""

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
import zipfile

import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.files.tables import read_table

TABLE = b"id;title\n1;kettle, old\n2;anchor\n"
TITLES = ["kettle, old", "anchor"]


PACKED = gzip.compress(TABLE)


@pytest.fixture
def save(tmp_path):
    def saver(name, content):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return saver


@pytest.fixture
def archive(tmp_path):
    def packed(**files):
        with zipfile.ZipFile(tmp_path / "shop.zip", "w") as file:
            for name, content in files.items():
                file.writestr(name.replace("_csv", ".csv"), content)
        return str(tmp_path / "shop.zip")

    return packed


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_packed_table_is_read_whatever_its_name(save, suffix):
    frame, report = read_table(save(f"items.csv{suffix}", PACKED))
    assert frame["title"].tolist() == TITLES
    assert report.file == "items.csv"


def test_a_name_in_capitals_counts_too(save):
    frame, _ = read_table(save("ITEMS.TSV.GZ", gzip.compress(b"id\ttitle, more\n1\ta, b\n")))
    assert list(frame) == ["id", "title, more"]


def test_two_packed_files_joined_are_one(save):
    path = save("items.csv.gz", PACKED + gzip.compress(b"3;rope\n"))
    assert len(read_table(path)[0]) == 3


def test_a_packed_file_cut_short_is_said_to_be(save):
    path = save("items.csv.gz", gzip.compress(TABLE * 1000)[:-6])
    with pytest.raises(DataError, match=r"items\.csv\.gz: damaged, or cut short"):
        read_table(path)


def test_a_file_made_to_fill_the_disk_is_refused(save, monkeypatch):
    monkeypatch.setenv("QKVSEARCH_MAX_UNPACKED", "1_000_000")
    path = save("bomb.csv", gzip.compress(b"0" * 30_000_000))
    with pytest.raises(DataError, match=r"1,000,000 bytes unpacked .*QKVSEARCH_MAX_UNPACKED=N"):
        read_table(path)


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress])
def test_a_file_packed_in_another_way_is_named(save, pack):
    with pytest.raises(DataError, match=r"packed as \.(bz2|xz); unpack it"):
        read_table(save("items.csv", pack(TABLE)))


def test_a_file_that_shrinks_as_tables_do_is_not_refused(save, monkeypatch):
    monkeypatch.setenv("QKVSEARCH_MAX_UNPACKED", "1")
    assert read_table(save("t.csv", gzip.compress(TABLE * 50)))[1].read == 149


def test_a_file_packed_again_and_again_is_refused(save):
    content = TABLE
    for _ in range(4):
        content = gzip.compress(content)
    with pytest.raises(DataError, match="packed more than 3 times"):
        read_table(save("t.csv.gz", content))


def test_the_one_table_of_an_archive_is_read_and_what_a_mac_adds_is_not(archive):
    path = archive(**{"folder/items.csv": TABLE, "__MACOSX/x": b"?", ".DS_Store": b"?"})
    frame, report = read_table(path)
    assert frame["title"].tolist() == TITLES
    assert report.file == "items.csv"


def test_of_several_tables_in_an_archive_one_is_asked_for(archive):
    path = archive(items_csv=TABLE, orders_csv=b"user,item\nann,1\n")
    with pytest.raises(DataError, match=r"2 files are in it; say which, such as .*#items\.csv"):
        read_table(path)
    assert list(read_table(f"{path}#orders.csv")[0]) == ["user", "item"]


def test_a_table_in_a_folder_of_an_archive_is_found_by_its_own_name(archive):
    path = archive(**{"a/items.csv": TABLE, "b/orders.csv": b"user,item\nann,1\n"})
    assert list(read_table(f"{path}#orders.csv")[0]) == ["user", "item"]
    assert list(read_table(f"{path}#b/orders.csv")[0]) == ["user", "item"]


def test_a_part_that_is_not_there_is_named_beside_those_that_are(archive):
    with pytest.raises(DataError, match=r"no file 'x' in it.*\(files: items\.csv, orders\.csv\)"):
        read_table(archive(items_csv=TABLE, orders_csv=TABLE) + "#x")


def test_an_archive_of_nothing_says_so(archive):
    with pytest.raises(DataError, match="there is no file in it"):
        read_table(archive())


def test_a_file_with_no_parts_has_no_part(save):
    with pytest.raises(DataError, match="so there is no part #Sheet2 in it"):
        read_table(f"{save('t.csv', TABLE)}#Sheet2")


def test_a_name_may_hold_a_hash(save):
    assert len(read_table(save("a#b.csv", TABLE))[0]) == 2


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_is_a_table_with_cells_of_several_lines(monkeypatch, pack):
    content = pack(b'id,title\n1,"two\nlines"\n2,b\n')
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    frame, report = read_table("-")
    assert frame["title"].tolist() == ["two\nlines", "b"]
    assert report.file == "standard input"


@pytest.mark.parametrize(
    "text",
    [
        *(f"id{mark}t\n1{mark}a\n" for mark in ",;\t|"),
        '{"id": 1, "t": "a"}',
        '[{"id": 1, "t": "a"}]',
    ],
)
def test_kinds_of_text_on_standard_input_are_told_apart(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert read_table("-")[0].to_numpy().tolist() == [["1", "a"]]


def test_nothing_on_standard_input_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(DataError, match="standard input: the file is empty"):
        read_table("-")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(TABLE,))
    writer.start()
    frame, _ = read_table(tmp_path / "pipe")
    writer.join()
    assert frame["title"].tolist() == TITLES


def test_a_name_longer_than_names_are_is_no_file():
    with pytest.raises(DataError, match="no such file"):
        read_table("x" * 5000)


@pytest.mark.parametrize(
    ("member", "content"),
    [
        ("mimetype", "application/vnd.oasis.opendocument.text"),
        ("xl/workbook.bin", "x"),
        ("Index/Document.iwa", "x"),
        ("word/document.xml", "<x/>"),
    ],
)
def test_a_document_that_is_an_archive_says_how_to_save_it(tmp_path, member, content):
    with zipfile.ZipFile(tmp_path / "a.file", "w") as archive:
        archive.writestr(member, content)
        archive.writestr("content.xml", "<x/>")
    with pytest.raises(DataError, match=r"save the table as .xlsx or CSV"):
        read_table(tmp_path / "a.file")

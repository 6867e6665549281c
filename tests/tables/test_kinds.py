"""Files that have no table in them are refused by what they are, before they are read."""

import gzip
import io
import re
import zipfile

import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.files.tables import read_table

BEGINNINGS = {
    "PDF": b"%PDF-1.7\n",
    "picture": b"\x89PNG\r\n\x1a\n",
    "audio": b"ID3\x03\0",
    "video": b"\0\0\0\x20ftypisom",
    "SQL": b"-- MySQL dump 10.13\n",
    "tar": b"items.csv".ljust(257, b"\0") + b"ustar",
}


@pytest.mark.parametrize("kind", BEGINNINGS)
@pytest.mark.parametrize("name", ["x.csv", "x.bin", "x.csv.gz"])
def test_other_kinds_are_named(tmp_path, kind, name):
    content = BEGINNINGS[kind] + b"\0" * 999
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(DataError, match=rf"{re.escape(name)}: this is .*{kind}"):
        read_table(path)


def test_a_packed_file_is_refused_before_all_of_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setenv("QKVSEARCH_MAX_UNPACKED", "1000000")
    path = tmp_path / "film.gz"
    path.write_bytes(gzip.compress(b"\x1aE\xdf\xa3" + b"\0" * 3_000_000))
    with pytest.raises(DataError, match="a video"):
        read_table(path)


@pytest.mark.parametrize("header", ["ID3 tag", "BM", "MZ", "Rar!", "ftyp", "cat_wide", "PDF"])
def test_a_table_may_begin_with_the_letters_of_another_kind(tmp_path, header):
    path = tmp_path / "items.csv"
    path.write_text(f"{header},id\nx,1\n")
    assert read_table(path)[0].columns.tolist() == [header, "id"]


def _archive(*names):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            archive.writestr(name, "id,title\n1,a\n")
    return packed.getvalue()


def test_an_archive_without_a_table_is_refused(tmp_path):
    path = tmp_path / "photos.zip"
    path.write_bytes(_archive("a.png", "b.JPG"))
    with pytest.raises(DataError, match=r"photos\.zip: .*2 files without a table \(\.jpg, \.png\)"):
        read_table(path)


def test_the_only_table_beside_pictures_is_read(tmp_path):
    path = tmp_path / "shop.zip"
    path.write_bytes(_archive("a.png", "items.csv", "b.png"))
    assert read_table(path)[0]["title"].tolist() == ["a"]

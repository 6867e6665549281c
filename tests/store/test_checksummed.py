"""Signed JSON: what is written is read back, and any other byte is found."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.errors import DamagedError
from qkvsearch.store.checksums import checksum_of, read_checksummed, write_checksummed

texts = st.text(st.characters(codec=None), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_what_is_written_is_read_back(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("checksummed") / "a.json"
    assert write_checksummed(path, content) == checksum_of(content)
    assert read_checksummed(path, checksum_of(content)) == content


def test_every_flipped_byte_and_every_cut_is_found(tmp_path):
    path = tmp_path / "a.json"
    write_checksummed(path, {"numbers": [1, 2.5], "é": None, "deep": {"a": [True]}})
    sound = path.read_bytes()
    for place in range(len(sound)):
        for damaged in (
            sound[:place] + bytes([sound[place] ^ 0x01]) + sound[place + 1 :],
            sound[:place] + bytes([sound[place] ^ 0x80]) + sound[place + 1 :],
            sound[:place],
        ):
            path.write_bytes(damaged)
            with pytest.raises(DamagedError, match=r"a\.json") as caught:
                read_checksummed(path)
            assert caught.value.file == path
    path.write_bytes(sound + b"\n")
    with pytest.raises(DamagedError):
        read_checksummed(path)


def test_a_sound_file_in_the_place_of_another_is_found(tmp_path):
    path = tmp_path / "a.json"
    expected = write_checksummed(path, {"build": 1})
    write_checksummed(path, {"build": 2})
    with pytest.raises(DamagedError, match="belongs here"):
        read_checksummed(path, expected)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", "[" * 100_000, '{"content": NaN}', "\x00", "1e999999"]
)
def test_what_is_no_checksummed_file_is_refused(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(DamagedError):
        read_checksummed(path)


def test_a_failed_write_keeps_the_file_and_leaves_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_checksummed(path, 1)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="space"):
        write_checksummed(path, 2)
    assert json.loads(path.read_text())["content"] == 1
    assert list(tmp_path.iterdir()) == [path]

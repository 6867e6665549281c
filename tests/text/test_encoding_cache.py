"""Texts are encoded once for all builds, and nothing of a removed item stays in the cache."""

import os
import shutil
import sqlite3

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.text.pretrained import encoding_cache, transformer_encoder
from qkvsearch.text.pretrained.transformer_encoder import TransformerEncoder

pytest.importorskip("tokenizers", reason="needs tokenizers: qkvsearch[encoders]")

TITLES = ["deep sea", "red water", "season", "sea water red", "didn't", ("deep " * 20).strip()]
ITEMS = pd.DataFrame({"id": list("abcdef"), "title": TITLES, "tags": ["sea red", "water"] * 3})
ARRAYS = [f"transformer.{name}" for name in ("keys", "cut", "token_indptr", "token_vectors")]


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    """The file of the cache, in a folder of its own."""
    monkeypatch.setattr(encoding_cache, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setenv("QKVSEARCH_MAX_CACHE", "100_000_000")
    encoding_cache._warned.clear()
    return encoding_cache.path()


@pytest.fixture
def encoded(monkeypatch):
    """The texts of items that are encoded, unlike the queries that a build makes with tokens."""
    texts, encode = [], TransformerEncoder._encode_batch

    def record(encoder, batch, longest, *others):
        texts.extend(batch if longest else ())
        return encode(encoder, batch, longest, *others)

    monkeypatch.setattr(TransformerEncoder, "_encode_batch", record)
    return texts


def contents(path):
    with qkv.open(path) as engine:
        return [np.array(engine.snapshot.array(name)) for name in ARRAYS]


def test_a_text_is_encoded_once_for_all_builds(tiny_bert, tmp_path, monkeypatch, encoded):
    items = {"items": ITEMS, "encoder": str(tiny_bert)}
    monkeypatch.setenv("QKVSEARCH_MAX_CACHE", "0")
    qkv.build(tmp_path / "plain", **items).close()
    assert not encoding_cache.path().exists()
    monkeypatch.setenv("QKVSEARCH_MAX_CACHE", "100_000_000")
    encoded.clear()
    qkv.build(tmp_path / "first", **items).close()
    assert sorted(encoded) == sorted({*TITLES, "sea red", "water"})
    encoded.clear()
    qkv.build(tmp_path / "second", **items).close()
    assert encoded == []
    plain = contents(tmp_path / "plain")
    for name in ("first", "second"):
        for array, expected in zip(contents(tmp_path / name), plain, strict=True):
            np.testing.assert_allclose(array, expected, atol=1e-6)
    new = pd.DataFrame({"id": ["g"], "title": ["a new season"], "tags": ["water"]})
    with qkv.open(tmp_path / "second") as engine:
        engine.add(new)
    assert encoded == ["a new season"]


def test_nothing_of_a_removed_or_replaced_item_stays(tiny_bert, tmp_path, file):
    with qkv.build(tmp_path / "ws", items=ITEMS, encoder=str(tiny_bert)) as engine:
        encoder, before = engine.models.encoder("transformer"), file.read_bytes()
        hidden = {text: encoder.encode_many([text])[0].tobytes() for text in TITLES}
        assert all(vector in before for vector in hidden.values())
        engine.remove("a")
        engine.add(pd.DataFrame({"id": ["b"], "title": ["deep water"], "tags": ["water"]}))
    after = file.read_bytes()
    assert [text for text in TITLES if hidden[text] not in after] == ["deep sea", "red water"]
    assert os.listdir(file.parent) == [file.name]


def truncated(file):
    file.write_bytes(file.read_bytes()[:5000])


def no_database(file):
    file.write_bytes(b"no database" * 500)


def bad_schema(file):
    _execute(file, "PRAGMA writable_schema = 1", "UPDATE sqlite_master SET sql = 'CREATE TABLE ('")


def other_columns(file):
    _execute(file, "DROP TABLE encoded", "CREATE TABLE encoded (text TEXT)")


def a_view(file):
    _execute(file, "DROP TABLE encoded", "CREATE VIEW encoded AS SELECT 1 AS text")


def a_trigger(file):
    keep = "CREATE TRIGGER keep BEFORE DELETE ON encoded BEGIN SELECT RAISE(IGNORE); END"
    _execute(file, keep)


def _execute(file, *statements):
    db = sqlite3.connect(file)
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


DAMAGES = (truncated, no_database, bad_schema, other_columns, a_view, a_trigger)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_file_is_removed_and_a_note_says_so(damage, tiny_bert, file, encoded, caplog):
    encoder = TransformerEncoder.from_folder(tiny_bert)
    list(encoder.encode_items(TITLES, 9))
    damage(file)
    (note,) = encoding_cache.forget_texts(TITLES)
    assert "damaged" in note
    assert str(file.parent) not in note
    assert not file.exists()
    assert encoding_cache.forget_texts(TITLES) == []
    list(encoder.encode_items(TITLES, 9))
    damage(file)
    encoded.clear()
    list(encoder.encode_items(TITLES, 9))
    assert sorted(encoded) == sorted(TITLES)
    assert caplog.text.count(str(file)) == 1
    encoded.clear()
    list(encoder.encode_items(TITLES, 9))
    assert encoded == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE encoded SET is_cut = 1 - is_cut",
        "UPDATE encoded SET longest = longest + 1",
        "UPDATE encoded SET vectors = NULL",
        "UPDATE encoded SET vectors = 'text'",
        "UPDATE encoded SET vectors = x''",
    ],
)
def test_no_part_of_an_entry_can_change(change, tiny_bert, file, encoded, caplog):
    encoder = TransformerEncoder.from_folder(tiny_bert)
    ((whole, _),) = encoder.encode_items(["deep sea"], 9)
    _execute(file, change)
    encoded.clear()
    for _ in range(2):
        ((again, _),) = encoder.encode_items(["deep sea"], 9)
        assert np.array_equal(again.embeddings, whole.embeddings)
        assert np.array_equal(again.cut, whole.cut)
    assert encoded == ["deep sea"]
    assert "damaged" in caplog.text


def test_the_entry_of_another_text_is_not_taken(tiny_bert, file):
    encoder = TransformerEncoder.from_folder(tiny_bert)
    ((right, _),) = encoder.encode_items(["deep sea"], 9)
    list(encoder.encode_items(["red water"], 9))
    _execute(
        file,
        "DELETE FROM encoded WHERE id = 1",
        f"UPDATE encoded SET text = x'{encoding_cache.text_key('deep sea').hex()}'",
    )
    ((again, _),) = encoder.encode_items(["deep sea"], 9)
    assert np.array_equal(again.embeddings, right.embeddings)


def read_only(file, monkeypatch):
    _failing(monkeypatch, sqlite3.SQLITE_READONLY)


def locked(file, monkeypatch):
    _failing(monkeypatch, sqlite3.SQLITE_BUSY)


def full(file, monkeypatch):
    _failing(monkeypatch, sqlite3.SQLITE_FULL)


def _failing(monkeypatch, code):
    """Let SQLite fail: the tests may run as root, whom no permissions stop."""

    connect = sqlite3.connect

    def fail(address, *args, **options):
        if "encoded-" not in str(address):
            return connect(address, *args, **options)
        error = sqlite3.OperationalError("as the system says")
        error.sqlite_errorcode = code
        raise error

    monkeypatch.setattr(sqlite3, "connect", fail)


@pytest.mark.parametrize("obstacle", [read_only, locked, full])
def test_a_file_that_cannot_be_changed_stays(obstacle, tiny_bert, tmp_path, file, monkeypatch):
    with qkv.build(tmp_path / "ws", items=ITEMS, encoder=str(tiny_bert)) as engine:
        with monkeypatch.context() as inside:
            obstacle(file, inside)
            notes = engine.remove("a").notes
            assert any("model cache --clear" in note for note in notes)
            assert str(tmp_path) not in str(notes)
            engine.add(pd.DataFrame({"id": ["g"], "title": ["a new season"], "tags": ["water"]}))
        assert encoding_cache.size()[0] == len({*TITLES, "sea red", "water"})


def test_a_lock_is_waited_for_and_then_a_note(tiny_bert, file, monkeypatch):
    list(TransformerEncoder.from_folder(tiny_bert).encode_items(TITLES, 9))
    monkeypatch.setattr(encoding_cache, "WAIT", 0.01)
    other = sqlite3.connect(file)
    other.execute("BEGIN EXCLUSIVE")
    (note,) = encoding_cache.forget_texts(TITLES)
    assert "locked" in note
    other.close()
    assert encoding_cache.forget_texts(TITLES) == []
    assert encoding_cache.size()[0] == 0


def test_a_folder_in_place_of_the_file_or_no_home_is_no_cache(tiny_bert, file, encoded, caplog):
    encoder = TransformerEncoder.from_folder(tiny_bert)
    file.mkdir(parents=True)
    for _ in range(2):
        list(encoder.encode_items(["deep sea"], 9))
    assert encoded == ["deep sea"] * 2
    assert len(caplog.records) == 1  # a warning once
    assert encoding_cache.forget_texts(["deep sea"]) == []
    assert encoding_cache.size() == (0, 0)


def test_a_user_without_a_home_has_no_cache(tiny_bert, monkeypatch, encoded):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(encoding_cache, "cache_folder", homeless)
    list(TransformerEncoder.from_folder(tiny_bert).encode_items(["deep sea"], 9))
    assert encoded == ["deep sea"]
    assert encoding_cache.forget_texts(["deep sea"]) == []


def test_an_interrupted_build_keeps_what_it_encoded(tiny_bert, monkeypatch, encoded):
    encoder = TransformerEncoder.from_folder(tiny_bert)
    monkeypatch.setattr(transformer_encoder, "STEP", 1)

    def stop(_, done, total):
        if done >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(encoder.encode_items(TITLES, 9, stop))
    first, steps = list(encoded), []
    encoded.clear()
    list(encoder.encode_items(TITLES, 9, lambda *step: steps.append(step)))
    assert 0 < len(encoded) < len(TITLES)
    assert set(first) | set(encoded) == set(TITLES)
    assert steps[0][1:] == (len(TITLES) - len(encoded), len(TITLES))
    assert steps[-1][1:] == (len(TITLES), len(TITLES))


def test_more_tokens_than_are_cached_are_encoded(tiny_bert, encoded):
    encoder = TransformerEncoder.from_folder(tiny_bert)
    for longest, n in ((2, 1), (1, 0), (4, 1), (3, 0)):
        encoded.clear()
        ((_, (tokens,)),) = encoder.encode_items(["deep sea water red"], longest)
        assert (len(tokens), len(encoded)) == (longest, n)


def test_another_model_or_runtime_has_entries_of_its_own(tiny_bert, tmp_path, encoded):
    list(TransformerEncoder.from_folder(tiny_bert).encode_items(["deep sea"], 9))
    other = shutil.copytree(tiny_bert, tmp_path / "other")
    os.utime(other / "tokenizer.json", (1, 1))
    list(TransformerEncoder.from_folder(other).encode_items(["deep sea"], 9))
    assert encoded == ["deep sea"] * 2
    assert encoding_cache.model_key("numpy") != encoding_cache.model_key("onnxruntime")


def test_damaged_entries_and_files_are_encoded_again(tiny_bert, file, encoded):
    encoder = TransformerEncoder.from_folder(tiny_bert)
    ((whole, tokens),) = encoder.encode_items(["deep sea"], 9)
    with sqlite3.connect(file) as db:
        ((content,),) = db.execute("SELECT vectors FROM encoded").fetchall()
        changed = bytes([*content[:-1], content[-1] ^ 1])
        assert db.execute("UPDATE encoded SET vectors = ?", [changed]).rowcount == 1
    db.close()
    for content in (None, b"no database", b""):
        if content is not None:
            file.write_bytes(content)
        for _ in range(2):  # a file that is no database is removed at first
            ((again, again_tokens),) = encoder.encode_items(["deep sea"], 9)
            assert np.array_equal(again.embeddings, whole.embeddings)
            assert np.array_equal(again_tokens, tokens)
    encoded.clear()
    list(encoder.encode_items(["deep sea"], 9))
    assert encoded == []


def test_the_oldest_entries_go_first(tiny_bert, monkeypatch, file):
    encoder = TransformerEncoder.from_folder(tiny_bert)
    monkeypatch.setenv("QKVSEARCH_MAX_CACHE", "40_000")
    texts = [f"deep sea {i}" for i in range(400)]
    for i in range(0, len(texts), 50):
        list(encoder.encode_items(texts[i : i + 50], 9))
        assert file.stat().st_size < 80_000
    n, _ = encoding_cache.size()
    assert 0 < n < 400
    model = encoding_cache.EncodingCache(
        sqlite3.connect(file).execute("SELECT DISTINCT model FROM encoded").fetchone()[0]
    )
    assert set(model.entries(texts, 9)) == set(texts[-n:])


def test_the_command_shows_and_clears_the_cache(tiny_bert, qkv, file):
    list(TransformerEncoder.from_folder(tiny_bert).encode_items(TITLES, 9))
    assert f"{len(TITLES)} texts" in qkv("model", "cache").stdout
    assert file.stat().st_mode & 0o077 == 0
    assert ": 0 texts, 0 MB" in qkv("model", "cache", "--clear").stdout
    assert not file.exists()


@pytest.fixture
def files_of_other_versions(file):
    file.parent.mkdir(exist_ok=True)
    names = ("encoded-1.db", "encoded-1.db-journal", "encoded-17.db")
    others = [file.with_name(name) for name in names]
    for other in others:
        other.write_bytes(b"vectors of texts")
    return others


def test_clearing_removes_the_files_of_other_versions(files_of_other_versions, qkv, file):
    kept = file.with_name("notes.db")
    kept.write_text("mine")
    qkv("model", "cache", "--clear")
    assert os.listdir(file.parent) == [kept.name]


@pytest.mark.parametrize("has_own_file", [False, True])
def test_forgotten_texts_are_in_no_file_of_another_version(
    files_of_other_versions, tiny_bert, file, has_own_file
):
    if has_own_file:
        list(TransformerEncoder.from_folder(tiny_bert).encode_items(TITLES, 9))
    assert encoding_cache.forget_texts([]) == []
    assert all(other.exists() for other in files_of_other_versions)
    assert encoding_cache.forget_texts(["deep sea"]) == []
    assert os.listdir(file.parent) == [file.name] * has_own_file


def test_a_damaged_file_leaves_those_of_other_versions(files_of_other_versions, file):
    file.write_bytes(b"no database" * 500)
    assert encoding_cache.EncodingCache(b"model").entries(["deep sea"], 9) == {}
    assert not file.exists()
    assert all(other.exists() for other in files_of_other_versions)


def test_a_file_of_another_version_that_stays_is_a_note(tiny_bert, file):
    list(TransformerEncoder.from_folder(tiny_bert).encode_items(TITLES, 9))
    file.with_name("encoded-1.db").mkdir()
    (note,) = encoding_cache.forget_texts(TITLES)
    assert "model cache --clear" in note
    assert encoding_cache.size()[0] == 0

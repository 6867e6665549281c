"""A build with its keys in Milvus answers as one with its keys here, and changes as it does."""

import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.engines.milvus.collections import write
from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.heads import dense as remote
from qkvsearch.heads.remote_keys import RemoteQuery
from qkvsearch.scores.approximate import Filter
from qkvsearch.store.checksums import read_checksummed, write_checksummed
from qkvsearch.store.remote_collections import RemoteCollection, drop_keys

# One worker builds what they ask.
pytestmark = pytest.mark.xdist_group("milvus")
pytest.importorskip("pymilvus", reason="pymilvus is not installed")
pytest.importorskip("milvus_lite", reason="milvus-lite is not installed")

QUERIES = [
    "sourdough bread",
    "learn guitar",
    "gardn tools",
    "the beginner",
    '"red planet"',
    "v0007",
]
WORDS = """sourdough bread starter guitar chords lesson garden tools red planet rover soup cake
learn beginner easy history of the sea whales film music""".split()


def catalog(n=160, seed=0):
    """Made titles and tags, with blanks in the other columns."""
    rng = np.random.default_rng(seed)
    titles = [" ".join(rng.choice(WORDS, 4)) for _ in range(n)]
    minutes = [int(m) if m else None for m in rng.integers(0, 30, n)]
    level = [str(x) or None for x in rng.choice(["easy", "hard", ""], n)]
    price = [round(float(x), 2) if x > 1 else None for x in rng.random(n) * 9]
    ids = [f"v{i:04d}" for i in range(n)]
    tags = [" ".join(rng.choice(WORDS, 6)) for _ in range(n)]
    columns = {"id": ids, "title": titles, "tags": tags, "minutes": minutes}
    return pd.DataFrame({**columns, "level": level, "price": price}).astype({"minutes": "Int64"})


@pytest.fixture(scope="module", autouse=True)
def few():
    """So few candidates and drawn items that most items are neither."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RemoteQuery, "min_candidates", 60)
        patch.setattr(remote, "DRAWN", 16)
        yield


def built(folder, keys):
    place = f"milvus:{folder}/keys.db" if keys else None
    name = folder / ("milvus" if keys else "local")
    columns = qkv.Columns(text=["title", "tags"])
    return qkv.build(name, catalog(), columns=columns, encoder="corpus", keys=place)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    with built(folder, False) as local, built(folder, True) as there:
        yield local, there


def same(local, there, weights=0.5):
    """The same hits with the same scores; weights are estimated, and near."""
    assert [hit.id for hit in local] == [hit.id for hit in there]
    for one, other in zip(local, there, strict=True):
        assert other.score == pytest.approx(one.score, abs=1e-4)
        assert other.heads == pytest.approx(one.heads, abs=1e-4)
        assert other.weight == pytest.approx(one.weight, rel=weights)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    "asked",
    [{}, {"anyway": True}, {"prefix": True}, {"heads": "semantic"}, {"heads": "lexical"}],
    ids=["plain", "anyway", "prefix", "semantic", "lexical"],
)
def test_a_search_finds_the_same_with_the_same_scores(both, query, asked):
    local, there = (engine.search(query, **asked) for engine in both)
    same(local, there)
    assert list(local.notes) == list(there.notes)
    for place in range(min(2, len(local))):
        parts = [sum(part.value for part in of.explain(place)) for of in (local, there)]
        assert parts[1] == pytest.approx(parts[0], abs=1e-4)
        assert parts[1] == pytest.approx(there[place].score, abs=1e-4)
        assert there.reasons(place) == pytest.approx(local.reasons(place)) or (
            [reason.text for reason in there.reasons(place)]
            == [reason.text for reason in local.reasons(place)]
        )


@pytest.mark.parametrize(
    "where", ["minutes > 12", "level IN ('easy', 'hard')", "title LIKE '%bread%'", "id = 'v0003'"]
)
def test_a_condition_leaves_the_same(both, where):
    local, there = (engine.search("sourdough guitar", where=where) for engine in both)
    same(local, there)


def test_neighbours_facets_the_map_and_an_export_are_the_same(both, tmp_path):
    same(*(engine.similar("v0005") for engine in both))
    same(*(engine.recommend(likes=["v0005", "v0009"], damping=0, diversity=0.5) for engine in both))
    counted = [engine.search("sourdough", facets="level").facets for engine in both]
    assert counted[0] == counted[1]
    maps = [engine.map() for engine in both]
    np.testing.assert_allclose(maps[0].positions, maps[1].positions, atol=1e-4)
    for name, engine in zip(("a", "b"), both, strict=True):
        engine.export_embeddings(tmp_path / f"{name}.npz")
    exported = [np.load(tmp_path / f"{name}.npz")["embeddings"] for name in ("a", "b")]
    np.testing.assert_array_equal(*exported)


@pytest.mark.parametrize("most_named", [0, 8192], ids=["asked for more", "named"])
def test_the_best_of_some_items_are_those_of_a_full_scan(both, monkeypatch, most_named):
    from qkvsearch.engines.milvus import store as module

    monkeypatch.setattr(module, "MAX_NAMED", most_named)
    local, there = both
    store, keys = (
        there.models.dense_keys("lsa").vectors.store,
        local.models.dense_keys("lsa").vectors,
    )
    mask = np.arange(160) % 9 == 0
    query = keys[5] + keys[20]
    best = np.argsort(-(keys @ query), kind="stable")
    found = store.nearest("lsa", query, 7, Filter(mask))
    assert found.tolist() == [row for row in best.tolist() if mask[row]][:7]
    assert store.nearest("lsa", query, 30, Filter(mask)).tolist() == np.flatnonzero(mask).tolist()
    level = float(np.sort(keys @ query)[-12])
    assert sorted(store.above("lsa", query, level)) == sorted(np.flatnonzero(keys @ query > level))


def test_items_that_are_far_down_are_named_where_no_search_reaches_them(both, monkeypatch):
    from qkvsearch.engines.milvus import store as module

    monkeypatch.setattr(module, "MAX_HITS", 30)
    monkeypatch.setattr(module, "MAX_NAMED", 8)
    local, there = both
    store, keys = (
        there.models.dense_keys("lsa").vectors.store,
        local.models.dense_keys("lsa").vectors,
    )
    order = np.argsort(-(keys @ keys[5]), kind="stable")
    mask = np.zeros(160, dtype=bool)
    mask[order[60:]] = True
    assert store.nearest("lsa", keys[5], 9, Filter(mask)).tolist() == order[60:69].tolist()
    with pytest.raises(QkvError, match="more than 30 items match by lsa"):
        store.above("lsa", keys[5], -2.0)


def test_dense_keys_are_not_on_this_machine(both):
    local, there = (sum(1 for file in e.workspace.path.rglob("*.keys.npy")) for e in both)
    assert (local > 0, there) == (True, 0)


def test_all_keys_are_verified(both):
    assert both[1].info(verify=True)


# --- what cannot be used ---


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("keys.db", "milvus:keys.db for a file"),
        ("milvus:", "milvus:keys.db for a file"),
        ("milvus:keys.sqlite", "ends in .db"),
        ("milvus:keys.db?index=FAST", "FLAT, HNSW"),
        ("milvus:/no/such/folder/keys.db", "there is no folder"),
        ("milvus:http://127.0.0.1:1", "no Milvus answers there"),
        ("milvus:https://me:secret@host", "set QKVSEARCH_MILVUS_TOKEN"),
    ],
)
def test_a_place_that_cannot_be_used_is_one_line(tmp_path, monkeypatch, keys, message):
    from qkvsearch.engines.milvus import connection

    monkeypatch.setattr(connection, "TO_CONNECT", 0.5)
    with pytest.raises(QkvError, match=message) as raised:
        qkv.build(tmp_path / "ws", catalog(20), encoder="corpus", keys=keys)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "ws" / "root.json").exists()


def test_without_the_package_its_installation_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(WorkspaceError, match=r"pip install -e '\.\[milvus\]'"):
        qkv.build(tmp_path / "ws", catalog(20), encoder="corpus", keys=f"milvus:{tmp_path}/k.db")


# --- what a stranger's files may not do ---


def test_a_token_goes_to_no_address_that_only_the_workspace_names(both, tmp_path, monkeypatch):
    import pymilvus

    from qkvsearch.engines.milvus import connection

    uri, workspace, sent = "http://127.0.0.1:1", tmp_path / "ws", []
    shutil.copytree(both[1].workspace.path, workspace)
    contents = read_checksummed(workspace / "root.json")
    for build in contents["builds"]:
        manifest = workspace / "builds" / build["name"] / "manifest.json"
        content = read_checksummed(manifest)
        content["facts"]["keys"]["uri"] = uri
        build["manifest"] = write_checksummed(manifest, content)
    write_checksummed(workspace / "root.json", contents)

    def client(uri, token, **_):
        sent.append((uri, token))
        raise OSError("refused")

    def search():
        with qkv.open(workspace) as engine, pytest.raises(WorkspaceError) as raised:
            engine.search("sourdough bread")
        return str(raised.value)

    monkeypatch.setattr(connection, "_clients", {})
    monkeypatch.setattr(pymilvus, "MilvusClient", client)
    monkeypatch.setenv("QKVSEARCH_MILVUS_TOKEN", "me:secret")
    assert "QKVSEARCH_MILVUS_URI (not set)" in search()
    monkeypatch.setenv("QKVSEARCH_MILVUS_URI", f"{uri}0")
    assert f"QKVSEARCH_MILVUS_URI ({uri}0)" in search()
    assert not sent
    monkeypatch.setenv("QKVSEARCH_MILVUS_URI", uri)
    search()
    with pytest.raises(WorkspaceError, match="refused"):
        connection.connect(f"{tmp_path}/keys.db", make=True)
    monkeypatch.delenv("QKVSEARCH_MILVUS_TOKEN")
    search()
    assert sent == [(uri, "me:secret"), (f"{tmp_path}/keys.db", ""), (uri, "")]


@pytest.mark.parametrize("keys", [3, {"uri": "http://127.0.0.1:1"}])
def test_keys_that_nobody_wrote_are_an_error(keys):
    with pytest.raises(WorkspaceError, match="does not say where its keys are"):
        RemoteCollection.of({"keys": keys})


def test_no_env_file_is_read(tmp_path):
    (tmp_path / ".env").write_text("QKVSEARCH_MILVUS_URI=http://127.0.0.1:1\n")
    code = (
        "import os; from qkvsearch.engines.milvus.connection import connect; "
        "connect('keys.db', make=True); print(os.environ.get('QKVSEARCH_MILVUS_URI'), "
        "os.environ.get('PYTHON_DOTENV_DISABLED'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "None None\n"


def test_a_collection_that_is_there_stays(both):
    place = RemoteCollection.of(both[1].snapshot.facts)
    with pytest.raises(WorkspaceError, match="is there already"):
        write(place.uri, place.collection, {}, "")
    assert place.collection in collections(both[1])


# --- changes ---


def collections(engine):
    from qkvsearch.engines.milvus.connection import connect

    place = RemoteCollection.of(engine.snapshot.facts)
    return {name for name in connect(place.uri).list_collections() if place.prefix in name}


def test_beside_a_damaged_build_no_collection_is_dropped(tmp_path, monkeypatch):
    dropped = []
    monkeypatch.setattr(f"{write.__module__}.drop_others", lambda *names: dropped.append(names))
    remote = RemoteCollection("keys.db", "qkv_", "qkv_1")
    for name, facts in (("one", {}), ("two", {"keys": remote.to_fact()})):
        (tmp_path / "builds" / name).mkdir(parents=True)
        write_checksummed(tmp_path / "builds" / name / "manifest.json", {"facts": facts})
    drop_keys([remote], tmp_path)
    assert [needed for *_, needed in dropped] == [{"qkv_1"}]
    (tmp_path / "builds" / "one" / "manifest.json").write_text("{")
    drop_keys([remote], tmp_path)
    assert len(dropped) == 1


@pytest.fixture
def own(tmp_path):
    with built(tmp_path, False) as local, built(tmp_path, True) as there:
        yield local, there


def answers_are_same(local, there):
    for query in QUERIES[:4]:
        same(local.search(query), there.search(query))
    same(local.similar("v0005"), there.similar("v0005"))


@pytest.mark.slow
def test_whatever_changes_answers_stay_the_same(own):
    local, there = own
    (first,) = collections(there)
    more = catalog(12, seed=1).assign(id=[f"v{i:04d}" for i in range(154, 166)])
    with qkv.open(there.workspace.path) as reader:
        before = reader.search("sourdough bread")
        for change in (
            lambda engine: engine.add(more),
            lambda engine: engine.remove(["v0001", "v0160"]),
            lambda engine: engine.rollback(),
            lambda engine: engine.remove(where="minutes = 7"),
            lambda engine: engine.compact(),
        ):
            for engine in own:
                change(engine)
            answers_are_same(local, there)
            store, keys = (
                there.models.dense_keys("lsa").vectors.store,
                there.models.dense_keys("lsa").vectors,
            )
            found = store.nearest("lsa", keys[3], 40, Filter())
            full = np.asarray(keys) @ keys[3]
            np.testing.assert_allclose(full[found], np.sort(full)[::-1][:40], atol=1e-5)
        assert first in collections(there)
        same(before, reader.search("sourdough bread"), weights=1e-6)
    for engine in own:
        engine.compact(drop_builds=True)
    answers_are_same(local, there)
    assert len(collections(there)) == 1
    assert first not in collections(there)


@pytest.mark.slow
def test_a_build_that_fails_leaves_the_old_one_and_no_collection(own, monkeypatch):
    _, there = own
    before, names = there.search("sourdough bread"), collections(there)
    from qkvsearch.store import workspace as workspace_module

    def full(*_):
        raise OSError("the disk fell out")

    more = catalog(3, seed=2).assign(id=["n1", "n2", "n3"])
    with monkeypatch.context() as patch:
        patch.setattr(workspace_module, "write_root", full)
        with pytest.raises(WorkspaceError, match="the disk fell out"):
            there.add(more)
    same(before, there.search("sourdough bread"), weights=1e-6)
    with qkv.open(there.workspace.path) as again:
        same(before, again.search("sourdough bread"), weights=1e-6)
    there.add(more)
    assert len(collections(there)) == len(names) + 1


@pytest.mark.slow
def test_a_collection_that_is_gone_is_told_of_and_repaired(own):
    from qkvsearch.engines.milvus.connection import connect

    local, there = own
    place = RemoteCollection.of(there.snapshot.facts)
    connect(place.uri).drop_collection(place.collection)
    with qkv.open(there.workspace.path) as engine:
        with pytest.raises(WorkspaceError, match="is not there") as raised:
            engine.search("sourdough bread")
        assert "\n" not in str(raised.value)
        with pytest.raises(WorkspaceError, match="damaged"):
            engine.info(verify=True)
    done = qkv.engine.repair(there.workspace.path)
    assert any("from the texts" in line for line in done.rebuilt)
    with qkv.open(there.workspace.path) as engine:
        answers_are_same(local, engine)


@pytest.mark.slow
def test_a_copy_of_a_workspace_drops_no_collection_of_the_other(own, tmp_path):
    _, there = own
    shutil.copytree(there.workspace.path, tmp_path / "copy")
    with qkv.open(tmp_path / "copy") as copy:
        copy.add(catalog(3, seed=2).assign(id=["n1", "n2", "n3"]))
        copy.compact()
        copy.compact(drop_builds=True)
    with qkv.open(there.workspace.path) as engine:
        assert engine.search("sourdough bread")

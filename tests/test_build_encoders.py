"""Builds with pretrained encoders: searched, explained exactly, and missed clearly when gone."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import QkvError, WorkspaceError
from qkvsearch.heads.token_head import TOKENS
from qkvsearch.learn.builder import build_workspace
from qkvsearch.store import Workspace
from qkvsearch.tables.sources import read_source
from qkvsearch.text.encoders import CHOICES
from qkvsearch.text.pretrained import static
from qkvsearch.text.pretrained.static import find_package
from qkvsearch.text.pretrained.transformer_encoder import TransformerEncoder

needs_static = pytest.mark.skipif(find_package() is None, reason="needs wordllama")
ITEMS = pd.DataFrame(
    {
        "id": range(6),
        "title": ["deep sea", "red season", "the sea", "", "deep red", "colder season"],
        "tags": ["sea", "season red", "deep deep sea", "red", "", "cold"],
    }
)


def check(engine, assert_adds_up, head):
    assert list(engine.models.head_weights)[-1] == head
    assert sum(engine.models.head_weights.values()) == pytest.approx(1)
    ranking = engine.search("deep red sea", k=6)
    weighted = {name for name, weight in engine.models.head_weights.items() if weight > 0}
    # Six items teach encoders too little.
    learned = {"lsa", "contrastive"}.intersection(engine.models.head_weights)
    assert weighted == {*engine.models.head_weights} - learned
    assert ("heads_left_out" in engine.info()) == bool(learned)
    assert set(ranking[0].heads) - {"token"} == weighted
    if learned:
        assert len(engine.search("deep sea", heads=list(learned), k=6, anyway=True))
    for i, hit in enumerate(ranking):
        assert_adds_up([part.value for part in ranking.explain(i)], hit.score)
    assert len(engine.search("deep sea", heads=[head], k=6, anyway=True)) == 6
    assert engine.similar(0, k=2)


def test_a_models_folder_from_anywhere(tiny_bert, tmp_path, monkeypatch, assert_adds_up):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_bert, "model")
    with qkv.build("ws", items=ITEMS, encoder="model"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "ws"]
    monkeypatch.chdir("/")
    with qkv.open(tmp_path / "ws") as engine:
        check(engine, assert_adds_up, "transformer")
        assert engine.attend("deep sea", layer=1, head=2).weights.shape == (4, 4)


def test_a_model_that_is_gone_is_named_and_words_still_search(tiny_bert, tmp_path, assert_adds_up):
    model = shutil.copytree(tiny_bert, tmp_path / "model")
    with qkv.build(tmp_path / "ws", items=ITEMS, encoder=str(model)) as engine:
        shutil.rmtree(model)
        assert engine.search("deep sea", heads=["lexical", "lsa"])
        with pytest.raises(QkvError, match=r"model.*search with `heads` lexical,lsa,contrastive$"):
            engine.search("deep sea")
        assert engine.similar("deep sea", k=3)
        shutil.copytree(tiny_bert, model)
        ranking = engine.similar("deep sea", k=3)
        for i, hit in enumerate(ranking):
            assert_adds_up([part.value for part in ranking.explain(i)], hit.score)
            assert {part.query for part in ranking.explain(i)} > {"deep", "sea"}


def other_tensors(monkeypatch):
    from safetensors.numpy import load_file, save_file

    tensors = load_file("model/model.safetensors")
    save_file({name: x[::-1].copy() for name, x in tensors.items()}, "model/model.safetensors")


def other_table(monkeypatch):
    table = static.read_table
    monkeypatch.setattr(static, "read_table", lambda path: table(path)[::-1].copy())


@pytest.mark.parametrize(
    ("encoder", "changed"),
    [("model", other_tensors), pytest.param("static", other_table, marks=needs_static)],
)
def test_another_model_in_the_same_place_is_refused(
    tiny_bert, tmp_path, monkeypatch, encoder, changed
):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_bert, "model")
    qkv.build("ws", items=ITEMS, encoder=encoder).close()
    changed(monkeypatch)
    with (
        qkv.open("ws") as engine,
        pytest.raises(WorkspaceError, match=r"another model.*build the workspace again"),
    ):
        engine.search("deep sea")


@pytest.fixture(scope="module")
def static_videos(tmp_path_factory):
    with qkv.build(tmp_path_factory.mktemp("ws"), "sample:videos", encoder="static") as engine:
        yield engine


@needs_static
@pytest.mark.xdist_group("static-videos")
def test_a_second_pass_compares_words_and_adds_up(static_videos, assert_adds_up):
    engine = static_videos
    for query in ("river fishing", "how does attention work", "voyage"):
        for heads in (None, ["lexical", "static", "token"], ["static", "token"]):
            ranking = engine.search(query, heads=heads, k=120, anyway=True)
            assert "token" in ranking[0].heads
            for i in (0, 5, 99, 110)[: len(ranking)]:
                parts = ranking.explain(i)
                assert_adds_up([part.value for part in parts], ranking[i].score)
                assert_adds_up(ranking[i].heads.values(), ranking[i].score)
        first, both = (
            engine.search(query, heads=heads, k=100) for heads in (["static"], ["static", "token"])
        )
        assert {hit.id for hit in first} == {hit.id for hit in both}
    with pytest.raises(QkvError, match="name one"):
        engine.search("river", heads=["token"])


@needs_static
@pytest.mark.xdist_group("static-videos")
def test_nonsense_is_shown_with_a_note(static_videos):
    (note,) = static_videos.search("zzqx wvvk", anyway=True).notes
    assert "nearest" in note
    assert not static_videos.search("fishing").notes
    (none,) = static_videos.search("zzqx wvvk", heads=["lexical"], anyway=True).notes
    assert none.startswith("No hits")


@pytest.mark.parametrize("array", ["keys", "probe", "token_vectors"])
def test_a_transformers_keys_and_tokens_are_repaired_together(tiny_bert, tmp_path, array):
    with qkv.build(tmp_path / "ws", items=ITEMS, encoder=str(tiny_bert)) as engine:
        before = engine.search("deep sea", k=6).to_records()
        file = engine.snapshot.segments[-1].folder / f"transformer.{array}.npy"
    file.write_bytes(file.read_bytes()[:-8] + b"\7" * 8)
    done = qkv.repair(tmp_path / "ws")
    assert not done.lost
    (line,) = done.rebuilt
    assert line.startswith("transformer and its tokens, from the texts")
    with qkv.open(tmp_path / "ws") as engine:
        assert engine.search("deep sea", k=6).to_records() == before


def test_a_query_is_read_once(tiny_bert, tmp_path, monkeypatch):
    passes = []
    read = TransformerEncoder.read
    monkeypatch.setattr(
        TransformerEncoder, "read", lambda *args: passes.append(args[1]) or read(*args)
    )
    with qkv.build(tmp_path / "ws", items=ITEMS, encoder=str(tiny_bert)) as engine:
        assert TOKENS in engine.texts.requested(None, has_user=False)
        engine.models.encoder("transformer")  # reads a probe
        passes.clear()
        engine.search("deep sea")
        assert passes == ["deep sea"]


def test_a_query_beyond_the_models_limit_is_said(tiny_bert, tmp_path):
    with qkv.build(tmp_path / "ws", items=ITEMS, encoder=str(tiny_bert)) as engine:
        limit = engine.models.encoder("transformer").limit
        (note,) = [n for n in engine.search("deep sea " * limit).notes if "tokens" in n]
        assert f"{limit} tokens" in note
        assert f"the last {2 * limit - (limit - 2)} words." in note
        assert "the last word." in engine.search("deep " * (limit - 1)).notes[-1]
        assert not [n for n in engine.search("deep sea").notes if "tokens" in n]


@needs_static
def test_the_static_table(tmp_path, assert_adds_up):
    with qkv.build(tmp_path / "ws", items=ITEMS, encoder="static") as engine:
        check(engine, assert_adds_up, "static")


@pytest.mark.parametrize(
    ("encoder", "said"),
    [
        ("statik", "no encoder 'statik'; did you mean static"),
        ("minilm", "model fetch minilm"),
        ("empty", "config"),
    ],
)
def test_an_encoder_that_is_not_there_is_named_before_any_work(
    tmp_path, monkeypatch, encoder, said
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QKVSEARCH_MODELS", "none")
    Path("empty").mkdir()
    steps = []
    with pytest.raises(QkvError, match=said):
        built("ws", encoder=encoder, progress=lambda *step: steps.append(step))
    assert steps == []
    assert not Path("ws").exists()


def built(path, **options):
    """What a build knows of itself, by the builder alone."""
    build_workspace(Workspace(path), read_source(items=ITEMS), **options)
    with qkv.open(path) as engine:
        return engine.snapshot.facts


@needs_static
def test_static_is_taken_where_it_is_installed_and_minilm_is_not(tmp_path):
    facts = built(tmp_path / "ws")
    assert facts["encoder"] == "static"
    assert "minilm" in facts["encoder_chosen"]
    assert facts["better_encoder"] == "minilm"


def test_every_stage_of_a_build_counts_to_its_end(tmp_path):
    steps = []
    built(tmp_path / "ws", encoder="corpus", progress=lambda *step: steps.append(step))
    stages = list(dict.fromkeys(stage for stage, _, _ in steps))
    assert {"reading texts", "weighing the heads", "saving"} <= set(stages)
    for name in stages:
        done, totals = zip(*(step[1:] for step in steps if step[0] == name), strict=True)
        assert list(done) == sorted(done), name
        assert set(totals) == {done[-1]}, name
    assert ("weighing the heads", 0, len(CHOICES["corpus"])) in steps  # a step for each head


def test_best_takes_all_that_are_installed_and_stays_usable(
    tiny_bert, tmp_path, monkeypatch, assert_adds_up
):
    for name in ("minilm", "e5"):
        shutil.copytree(tiny_bert, tmp_path / name)
    prompts = {"prompts": {"query": "sea: ", "passage": ""}}
    (tmp_path / "e5" / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    monkeypatch.setenv("QKVSEARCH_MODELS", str(tmp_path))
    with qkv.build(tmp_path / "ws", items=ITEMS, encoder="best", language="en") as engine:
        assert engine.info()["encoder"] == "best"
        check(engine, assert_adds_up, "minilm")
        assert "e5" in engine.models.head_weights
        engine.add(items=pd.DataFrame({"id": [6], "title": ["red deep water"], "tags": [""]}))
        assert engine.search("red deep water", k=1)[0].id == 6
    keys = next((tmp_path / "ws" / "builds").glob("*/e5.keys.npy"))
    keys.write_bytes(keys.read_bytes()[:-4] + b"\1\1\1\1")
    assert any("e5" in line for line in qkv.repair(tmp_path / "ws").rebuilt)
    with qkv.open(tmp_path / "ws") as engine:
        check(engine, assert_adds_up, "minilm")


def test_facts_name_the_encoder_that_would_find_more(tmp_path):
    items = pd.DataFrame({"id": range(3), "title": ["河流为什么会弯曲", "鲸鱼怎么睡觉", "红烧肉"]})
    with qkv.build(tmp_path / "ws", items=items) as engine:
        assert "`qkvsearch model fetch e5`" in engine.info()["advice"]
    with qkv.build(tmp_path / "en", items=ITEMS, encoder="corpus") as engine:
        assert engine.info()["advice"] == ""

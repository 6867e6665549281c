"""The static encoder: sums of subword vectors with words for labels; files that cannot be read."""

import json
import subprocess
import sys

import numpy as np
import pytest

from qkvsearch import errors
from qkvsearch._utils import scratch
from qkvsearch.errors import QkvError
from qkvsearch.text.pretrained import model_files, static
from qkvsearch.text.pretrained import subwords as _subwords
from qkvsearch.text.pretrained.static import StaticEncoder

tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers: qkvsearch[encoders]")
numpy_files = pytest.importorskip(
    "safetensors.numpy", reason="needs safetensors: qkvsearch[encoders]"
)

PIECES = ["<unk>", "deep", "sea", "##son", "red", "注", ".", "void"]
VECTORS = np.vstack([np.eye(4), np.ones((1, 4)), -np.eye(4)[:2], np.zeros((1, 4))])


@pytest.fixture
def files(tmp_path):
    vocabulary = {piece: i for i, piece in enumerate(PIECES)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="<unk>"))
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.enable_padding(length=9)
    tokenizer.enable_truncation(2)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    table = {static.TENSOR: VECTORS.astype(np.float16)}
    numpy_files.save_file(table, tmp_path / "table.safetensors")
    return tmp_path / "table.safetensors", tmp_path / "tokenizer.json"


@pytest.fixture
def encoder(files):
    return StaticEncoder.from_files(*files)


def test_a_text_is_the_mean_of_its_pieces_at_length_1(encoder):
    found = encoder.encode("Deep season")
    expected = VECTORS[[1, 2, 3]].sum(axis=0)
    np.testing.assert_allclose(found.total, expected / np.linalg.norm(expected), atol=1e-6)
    assert found.labels == ["Deep", "season"]
    assert found.vectors.dtype == np.float32


@pytest.mark.parametrize("text", ["", "  \n", "\u200b", "void", "deep ."])
def test_nothing_to_see_or_to_point_at_has_no_vectors(encoder, text):
    encoder = encoder.weighted(np.ones(len(PIECES)))
    if text == "deep .":
        opposite = encoder.vectors.copy()
        opposite[6] = -opposite[1]
        encoder = StaticEncoder(encoder.tokenizer, opposite)
    assert encoder.encode(text).vectors.shape == (0, 4)
    assert not encoder.encode_many([text]).any()


def test_a_sequence_keeps_repeats_and_plain_vectors(encoder):
    sequence = encoder.weighted(np.arange(8)).sequence("sea season sea")
    assert sequence.labels == ["sea", "season", "sea"]
    expected = VECTORS[[2, 2, 2]]
    expected[1] = VECTORS[[2, 3]].mean(axis=0)
    np.testing.assert_allclose(sequence.vectors, expected)
    assert encoder.sequence("").vectors.shape == (0, 4)
    assert encoder.attend("zzqx").left_out == []


def test_weights_say_how_much_each_token_counts(encoder):
    weights = np.array([1, 3, 0, 1, 1, 1, 1, 1])
    total = encoder.weighted(weights).encode("deep sea red").total
    expected = 3 * VECTORS[1] + VECTORS[4]
    np.testing.assert_allclose(total, expected / np.linalg.norm(expected), atol=1e-6)
    many = encoder.weighted(weights).encode_many(["deep sea red"])
    np.testing.assert_allclose(many[0], total, atol=1e-6)
    with pytest.raises(QkvError, match=r"weights are \(3,\), not \(8,\)"):
        encoder.weighted(np.ones(3))


def test_the_second_pass_compares_no_token_without_weight(encoder):
    weights = np.array([1, 3, 0, 1, 1, 1, 1, 1])
    tokens = encoder.weighted(weights).read("deep sea red").tokens
    assert tokens.labels == ["deep", "sea", "red"]
    np.testing.assert_array_equal(tokens.vectors, VECTORS[[1, 2, 4]] * [[1], [0], [1]])


def test_idf_counts_items_not_occurrences(encoder):
    idf = encoder.idf([["deep deep sea", "", "", "red"], ["deep", "deep", "", ""]])
    assert idf[PIECES.index("deep")] == pytest.approx(np.log(5 / 3) + 1)
    assert idf[PIECES.index("sea")] == idf[PIECES.index("red")] == pytest.approx(np.log(5 / 2) + 1)
    assert idf[PIECES.index("注")] == pytest.approx(np.log(5) + 1)


def test_files_that_cannot_be_read_are_named(files, tmp_path):
    table, tokenizer = files
    with pytest.raises(QkvError, match=r"table\.safetensors: not a tokenizer"):
        StaticEncoder.from_files(table, table)
    with pytest.raises(QkvError, match=r"tokenizer\.json: not a safetensors file"):
        StaticEncoder.from_files(tokenizer, tokenizer)
    numpy_files.save_file({"other": np.ones((2, 2))}, tmp_path / "other.safetensors")
    with pytest.raises(QkvError, match=r"no tensor 'embedding\.weight'; there are other"):
        StaticEncoder.from_files(tmp_path / "other.safetensors", tokenizer)


def test_a_token_without_a_row_is_told_by_every_question(files, tmp_path):
    numpy_files.save_file({static.TENSOR: VECTORS[:2].astype("f4")}, tmp_path / "short.safetensors")
    encoder = StaticEncoder.from_files(tmp_path / "short.safetensors", files[1])
    for ask in (
        encoder.encode,
        lambda text: encoder.encode_many([text]),
        lambda text: encoder.idf([[text]]),
        lambda text: next(encoder.tokens_many([text], 9)),
    ):
        with pytest.raises(QkvError, match="has a token 4, and the table 2 rows"):
            ask("deep red")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (np.ones((2, 2), np.int64), "holds I64; F16, F32 and F64"),
        (np.ones(4, np.float32), r"is \(4,\), not \(any, any\)"),
        (np.ones((0, 4), np.float32), r"is \(0, 4\)"),
        (np.full((2, 2), np.inf, np.float32), "not finite"),
        (np.append(np.ones(model_files.BLOCK), np.inf).astype("f2")[:, None], "not finite"),
    ],
)
def test_a_table_of_another_kind_is_refused(tmp_path, table, said):
    numpy_files.save_file({static.TENSOR: table}, tmp_path / "table.safetensors")
    with pytest.raises(QkvError, match=said):
        static.read_table(tmp_path / "table.safetensors")


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(static, "find_spec", lambda name: None)
    with pytest.raises(QkvError, match=r"pip install -e '\.\[encoders\]'"):
        StaticEncoder.from_package()


def test_without_a_library_the_extra_is_named(files, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(errors, "import_module", missing)
    with pytest.raises(QkvError, match=r"needs safetensors: pip install -e '\.\[encoders\]'"):
        static.read_table(files[0])
    with pytest.raises(QkvError, match="needs tokenizers: "):
        static.SubwordFile(files[1])


@pytest.mark.parametrize(
    ("text", "spans", "labels", "owners"),
    [
        ("didn’t", [(0, 4), (4, 5), (5, 6)], ["didn’t"], [0, 0, 0]),
        ("a-b", [(0, 1), (1, 2), (2, 3)], ["a", "-", "b"], [0, 1, 2]),
        # The bytes of one sign are one word; a space belongs to what follows, or to what is last.
        ("x 🚀 ", [(0, 1), (1, 2), (2, 3), (2, 3), (3, 4)], ["x", "🚀"], [0, 1, 1, 1, 1]),
        ("Montre\u0301al", [(0, 6), (6, 7), (7, 9)], ["Montre\u0301al"], [0, 0, 0]),
        ("注意", [(0, 2)], ["注意"], [0]),
        ("", [], [], []),
    ],
)
def test_pieces_are_joined_to_the_words_they_are_pieces_of(text, spans, labels, owners):
    found, owned = _subwords.join_pieces(text, spans)
    assert (found, owned.tolist()) == (labels, owners)


# --- the real table ---


@pytest.fixture(scope="module")
def wordllama():
    if static.find_package() is None:
        pytest.skip("needs wordllama: pip install 'qkvsearch[encoders]'")
    return StaticEncoder.from_package()


def test_wordllama_is_read_without_being_imported(wordllama):
    program = "\n".join(
        [
            "import sys",
            "from qkvsearch.text.pretrained.static import StaticEncoder",
            "print(len(StaticEncoder.from_package().vectors), 'wordllama' in sys.modules)",
        ]
    )
    printed = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert printed == "32000 False\n"
    assert wordllama.vectors.shape == (32000, 256)


def test_wordllama_reads_meaning_and_labels_words(wordllama):
    found = wordllama.encode("Unbelievable kittens didn't 注意 🚀")
    assert found.labels == ["Unbelievable", "kittens", "didn't", "注", "意", "🚀"]
    query = wordllama.encode("kitten movies").total
    near, far = wordllama.encode_many(["a film about cats", "quarterly revenue"])
    assert query @ near > query @ far


def test_wordllama_gives_unit_rows_for_anything(wordllama):
    texts = ["a", "!!!", "🚀", "注意力", "x" * 5000, "\ud800", json.dumps({"a": 1})]
    np.testing.assert_allclose(np.linalg.norm(wordllama.encode_many(texts), axis=1), 1, atol=1e-5)


LONG_TEXTS = [
    "the deep sea and its unbelievable kittens\n" * 20,
    "two  spaces \n and\ttabs. " * 30,
    "\n a blank line\n\nfirst" + " word" * 150,
    "</s> is no word of " + "a text " * 90,
    "注意力 " * 200,
    "▁ ▁ " * 200,
]


@pytest.mark.parametrize("text", LONG_TEXTS)
def test_a_long_text_is_cut_as_a_whole_one_is(wordllama, text):
    small = text.lower()
    whole = wordllama.tokenizer.encode(small, add_special_tokens=False).ids
    [batch] = wordllama._batches([text])
    assert batch.ids.tolist() == whole


def test_words_are_cut_alone_where_no_subword_is_the_end_of_a_line(wordllama):
    text = " ".join(LONG_TEXTS[:3])
    words = wordllama.weighted(np.ones(len(wordllama.vectors)))._recurring_words
    [together] = words.of_texts([text])
    words._of_word.clear()
    words._line_end = None
    assert words.of_texts([text])[0].tolist() == together.tolist()


def test_texts_that_are_cut_already_are_not_cut_again(wordllama, monkeypatch):
    monkeypatch.setattr(static, "TOKENS", 300)
    monkeypatch.setattr(scratch, "LARGE", 1024)
    titles = [f"Title {n} of the deep sea" for n in range(len(LONG_TEXTS))]
    fields = [titles, LONG_TEXTS]
    idf, keys = wordllama.idf(fields), [wordllama.encode_many(column) for column in fields]
    encoder = wordllama.having_cut(fields)
    monkeypatch.setattr(static, "_readable", None)
    assert encoder.idf(fields).tolist() == idf.tolist()
    for column, expected in zip(fields, keys, strict=True):
        pieces = [each.embeddings for each, _ in encoder.encode_with_tokens(column, 0)]
        np.testing.assert_array_equal(np.concatenate(pieces), expected)
        assert len(pieces) > (column is LONG_TEXTS)


def test_weights_keep_the_words_that_were_cut(wordllama):
    wordllama.idf([LONG_TEXTS])
    weighted = wordllama.weighted(np.ones(len(wordllama.vectors)))
    assert weighted._recurring_words is wordllama._recurring_words


def test_batches_are_of_few_characters(wordllama, monkeypatch):
    monkeypatch.setattr(static, "CHARACTERS", 8)
    batches = list(wordllama._batches(["deep sea", "red", "kettle", ""]))
    assert [len(batch) for batch in batches] == [1, 2, 1]


def test_a_tokenizer_that_splits_otherwise_reads_long_texts_whole(encoder):
    assert encoder._recurring_words is None
    assert encoder.encode_many(["deep season " * 100]).any()

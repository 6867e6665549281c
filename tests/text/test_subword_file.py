"""A tokenizer's file of which a short text needs a few lines: it is cut as by the whole."""

import json
import random

import pytest

from qkvsearch.errors import QkvError
from qkvsearch.text.pretrained import static
from qkvsearch.text.pretrained.subword_file import FEW, SHORT, SubwordFile, SubwordLines

tokenizers = pytest.importorskip("tokenizers")
# Not imported: another test asks whether the encoder does without.
pytestmark = pytest.mark.skipif(static.find_package() is None, reason="wordllama is not installed")
TEXTS = [
    "river", "How does attention work?", "  two  spaces ", "Ça déjà vu; ñandú", "注意力 и внимание",
    "🚀 x", "[a]^-]b", "e\u0301", "\u2581river", "qnhibbae qnxpzsqo", "1 000,5 €", "don't", "_",
]  # fmt: skip
# What is no line's of its own: an escape, a special token, what is written in two ways.
ONLY_WHOLE = ['"', "\\", "a\nb", "a\tb", "<s>", "a</s>b", "<unk>", "and/or", "\x00"]


@pytest.fixture(scope="module")
def path():
    return static.find_package() / static.TOKENIZER


@pytest.fixture(scope="module")
def whole(path):
    return tokenizers.Tokenizer.from_file(str(path))


def made_of(found):
    return found.ids, found.tokens, found.offsets, found.special_tokens_mask


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_cut_as_by_the_whole_file(path, whole, text):
    part = SubwordLines.of(path).tokenizer_for(text)
    assert part.get_vocab_size() < 5_000
    for added in (False, True):
        found, expected = (each.encode(text, add_special_tokens=added) for each in (part, whole))
        assert made_of(found) == made_of(expected)


def test_so_are_texts_of_random_characters(path, whole):
    rng, lines = random.Random(0), SubwordLines.of(path)
    ranges = [range(32, 127), range(160, 0x600), range(0x3000, 0x9FFF), range(0x1F300, 0x1F700)]
    parts = 0
    for _ in range(100):
        text = "".join(chr(rng.choice(rng.choice(ranges))) for _ in range(rng.randrange(1, 30)))
        part = lines.tokenizer_for(text)
        if part is not None:
            parts += 1
            assert made_of(part.encode(text)) == made_of(whole.encode(text))
    assert parts > 50


@pytest.mark.parametrize("text", ONLY_WHOLE)
def test_what_lines_do_not_say_is_left_to_the_whole(path, whole, text):
    assert SubwordLines.of(path).tokenizer_for(text) is None
    assert made_of(SubwordFile(path).encode(text)) == made_of(whole.encode(text))


def test_the_whole_is_read_for_many_texts_long_ones_and_batches(path):
    few = SubwordFile(path)
    for _ in range(FEW):
        few.encode("river")
    assert "_tokenizer" not in vars(few)
    few.encode("river")
    assert "_tokenizer" in vars(few)
    for ask in (lambda f: f.encode("a" * (SHORT + 1)), lambda f: f.encode_batch_fast(["river"])):
        file = SubwordFile(path)
        ask(file)
        assert "_tokenizer" in vars(file)


def changed(path, tmp_path, change, **written):
    """The file with another model."""
    whole = json.loads(path.read_text("utf-8"))
    change(whole)
    other = tmp_path / "tokenizer.json"
    settings = {"indent": 2, "ensure_ascii": False} | written
    other.write_text(json.dumps(whole, **settings), encoding="utf-8")
    return other


@pytest.mark.parametrize(
    ("change", "written"),
    [
        (lambda whole: whole["model"].update(dropout=0.5), {}),
        (lambda whole: whole["model"].update(end_of_word_suffix="</w>"), {}),
        (lambda whole: whole.update(pre_tokenizer={"type": "Whitespace"}), {}),
        (lambda whole: None, {"ensure_ascii": True}),
        (lambda whole: None, {"indent": None}),
        (lambda whole: whole["model"].update(merges=[["a", "b"]]), {}),
    ],
)
def test_another_kind_of_file_is_read_as_a_whole(path, tmp_path, change, written):
    assert SubwordLines.of(changed(path, tmp_path, lambda whole: None)) is not None
    assert SubwordLines.of(changed(path, tmp_path, change, **written)) is None


@pytest.mark.parametrize("content", ["", "{}", '\n    "vocab": {\n      "a": 1\n'])
def test_a_file_that_is_no_tokenizer_raises_at_once(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(QkvError, match=r"tokenizer\.json: not a tokenizer"):
        SubwordFile(tmp_path / "tokenizer.json")

"""What is shown of a tokenizer's pieces: nothing of how it marks them inside."""

from types import SimpleNamespace

import pytest

from qkvsearch.text.pretrained.subwords import attended_words, piece_labels


def encoding(*pieces):
    """An encoding of pieces (token, start, end); (0, 0) is a token that is not in the text."""
    tokens, starts, ends = zip(*pieces, strict=True)
    offsets = list(zip(starts, ends, strict=True))
    is_special = [span == (0, 0) for span in offsets]
    return SimpleNamespace(tokens=list(tokens), offsets=offsets, special_tokens_mask=is_special)


SENTENCE_PIECE = (
    "Tokens, 注意力 <pad>",
    encoding(
        *[("<s>", 0, 0), ("▁To", 0, 2), ("kens", 2, 6), (",", 6, 7), ("▁", 8, 9)],
        *[("注意力", 8, 11), ("<pad>", 12, 17), ("</s>", 0, 0)],
    ),
    ["<s>", "To", "##kens", ",", "␣", "注意力", "<PAD>", "</s>"],
    ["<s>", "Tokens", ",", "注意力", "<PAD>", "</s>"],
)
WORD_PIECE = (
    "Tokens [PAD]",
    encoding(*[("[CLS]", 0, 0), ("token", 0, 5), ("##s", 5, 6), ("[PAD]", 7, 12), ("[SEP]", 0, 0)]),
    ["[CLS]", "Token", "##s", "<PAD>", "[SEP]"],
    ["[CLS]", "Tokens", "<PAD>", "[SEP]"],
)


@pytest.mark.parametrize(("text", "found", "labels", "words"), [SENTENCE_PIECE, WORD_PIECE])
def test_pieces_are_as_written_and_join_to_words(text, found, labels, words):
    assert piece_labels(text, found) == labels
    joined, owners = attended_words(text, labels, found)
    assert joined == words
    assert owners.tolist() == sorted(owners)
    assert owners.max() == len(words) - 1

"""Where long texts are split into passages."""

from itertools import pairwise
from time import process_time

import pytest

from qkvsearch.text.passages import LONG, LONGEST_REPEATED, PASSAGE, n_words, passages

SENTENCES = [f"Sentence {n} says that the {n}th keeper rowed across." for n in range(200)]
TALK = "\n\n".join(f"Ann Lin: {' '.join(SENTENCES[n : n + 8])}" for n in range(0, 200, 8))
CAPTIONS = "\n".join(f"and so the keeper number {n} rowed across" for n in range(200))
CHINESE = "守塔人划船过海，风很大。" * 120


@pytest.mark.parametrize("text", ["", "Short.", "word " * LONG, "灯" * 400])
def test_a_text_that_is_not_long_has_no_passages(text):
    assert passages(text) == []


@pytest.mark.parametrize(
    "text", [" ".join(SENTENCES), TALK, CAPTIONS, CAPTIONS.replace("\n", " "), CHINESE, "a" * 3000]
)
def test_passages_have_all_of_a_text_and_none_is_long(text):
    spans = passages(text)
    if text == "a" * 3000:  # a single word
        assert spans == []
        return
    assert (spans[0][0], spans[-1][1]) == (0, len(text))
    for (start, end), (next_start, next_end) in pairwise(spans):
        assert start < next_start <= end < next_end
    lengths = [n_words(text[slice(*span)]) for span in spans]
    assert max(lengths) <= PASSAGE + LONGEST_REPEATED
    assert min(lengths[:-1]) >= PASSAGE / 2 - 20


def test_a_passage_begins_with_the_last_sentence_of_the_one_before():
    text = " ".join(SENTENCES)
    (_, end), (start, _) = passages(text)[:2]
    repeated = text[start:end].strip()
    assert repeated in SENTENCES


def test_a_passage_ends_before_a_heading_and_repeats_nothing_across_it():
    text = " ".join(SENTENCES[:20]) + "\n\n## The flood\n\n" + " ".join(SENTENCES[20:60])
    heading = text.index("## The flood")
    starts = [start for start, _ in passages(text)]
    assert heading in starts
    assert all(end <= heading for start, end in passages(text) if start < heading)


def test_a_passage_begins_with_a_speaker_where_there_is_one_near():
    starts = [text[start:].lstrip() for text in [TALK] for start, _ in passages(text)]
    # Each begins with a speaker, or with the sentence that it repeats before one.
    assert sum("Ann Lin:" in start[:120] for start in starts) >= len(starts) - 1


@pytest.mark.parametrize("piece", ["so we went on along the river ", "我们沿着河边一直走"])
def test_a_long_text_without_full_stops_is_split_in_time_that_grows_with_it(piece):
    text = piece * 12_000
    begun = process_time()
    assert len(passages(text)) > 300
    assert process_time() - begun < 3  # it was a minute

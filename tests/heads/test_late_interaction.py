"""The second pass: attention of a query's words over the words of the best items."""

from dataclasses import replace

import numpy as np
import pytest

from qkvsearch.attention import attention
from qkvsearch.heads import late_interaction as late
from qkvsearch.heads.bm25 import LexicalKeys
from qkvsearch.heads.late_interaction import NOT_COMPARED, LateInteraction, TokenKeys, rerank
from qkvsearch.scores.components import Components, ScoreComponent
from qkvsearch.scores.fusion import Scores, fuse
from qkvsearch.scores.topk import top_k
from qkvsearch.text import text_encoder
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.labelled import LEVELS, LabelledVectors, quantize_int8
from qkvsearch.text.learned.corpus_encoders import CorpusEncoder
from qkvsearch.text.pretrained import static
from qkvsearch.text.pretrained.static import StaticEncoder
from qkvsearch.text.pretrained.transformer_encoder import TransformerEncoder
from qkvsearch.text.text_encoder import EncodedItems, encode_items, encoded_with_tokens
from tests.terms import count_terms

N_ITEMS, D = 60, 8
EMPTY = 7
ALL = np.arange(N_ITEMS)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def items(rng):
    """Unit vectors of 1 to 5 tokens an item; one item has none."""
    sizes = [0 if i == EMPTY else 1 + i % 5 for i in range(N_ITEMS)]
    return [unit(rng.normal(size=(n, D))) for n in sizes]


@pytest.fixture
def second(rng, items):
    query = LabelledVectors(["deep", "sea", "diver"], unit(rng.normal(size=(3, D))))
    indptr = np.cumsum([0, *map(len, items)])
    table = 3 * np.concatenate(items)
    keys = TokenKeys(indptr, np.arange(len(table), dtype=np.int32), table)
    labels = [[f"{i}.{j}" for j in range(len(vectors))] for i, vectors in enumerate(items)]
    return LateInteraction(query, np.array([0.5, 0.3, 0.2]), keys, labels.__getitem__)


def first_of(scores, covered=None):
    scores = np.asarray(scores, dtype=np.float32)
    parts = [
        Components.of([ScoreComponent("first", "word", "word", float(score))]) for score in scores
    ]
    return Scores("first", scores, parts.__getitem__, covered)


@pytest.fixture
def first(rng):
    return first_of(rng.normal(size=N_ITEMS))


# --- scores ---


def test_a_score_is_the_query_times_what_attention_over_the_items_tokens_gives(second, items):
    scores = second.scores(ALL)
    for i in np.delete(ALL, EMPTY):
        mixed = attention(second.query.vectors, items[i], items[i], scale=1 / second.temperature)
        expected = second.weights @ (second.query.vectors * mixed).sum(axis=1)
        assert scores[i] == pytest.approx(expected, abs=2e-6)


def test_near_a_temperature_of_0_it_is_the_most_similar_token_alone(second, items):
    """MaxSim: Khattab and Zaharia 2020, section 3.3."""
    cold = LateInteraction(second.query, second.weights, second.keys, second.labels_of, 1e-6)
    present = np.delete(ALL, EMPTY)
    expected = [second.weights @ (second.query.vectors @ items[i].T).max(axis=1) for i in present]
    np.testing.assert_allclose(cold.scores(present), expected, atol=2e-6)


def test_parts_are_word_by_word_and_add_up(second, assert_adds_up):
    scores = second.scores(ALL)
    for i in ALL:
        parts = second.parts(i)
        assert_adds_up([part.value for part in parts], scores[i])
        assert {part.key for part in parts} == set(second.labels_of(i))


def test_relative_parts_are_how_much_better_a_word_is_matched_than_on_average(
    second, first, assert_adds_up
):
    relative = replace(second, is_relative=True)
    plain, other = rerank(first, second, 0.5, depth=10), rerank(first, relative, 0.5, depth=10)
    np.testing.assert_array_equal(plain.scores, other.scores)
    candidates = [i for i in top_k(first.scores, 10) if i != EMPTY]
    sums = np.zeros(3)
    for i in candidates:
        parts = other.parts(i)
        assert_adds_up([part.value for part in parts], other.scores[i])
        own = [part for part in parts if part.head == "token"]
        assert None not in {part.query for part in own}
        for row, word in enumerate(second.query.labels):
            sums[row] += sum(part.value for part in own if part.query == word)
    # Over all candidates, each word adds nothing.
    np.testing.assert_allclose(sums, 0, atol=1e-4)


def test_directions_in_int8_are_near_the_vectors(rng):
    """Half a level an entry at most: an error of ½ √d · max|v| / 127 beside a length of 1."""
    vectors = unit(rng.normal(size=(200, 384)))
    codes = quantize_int8(5 * vectors)
    keys = TokenKeys(np.array([0, 200]), codes)
    similar, lengths = keys.similarities(vectors, np.array([0]))
    assert lengths.tolist() == [200]
    bound = np.sqrt(384) / 2 * np.abs(vectors).max(axis=1) / LEVELS
    assert codes.dtype == np.int8
    assert np.abs(similar - vectors @ vectors.T).max() < 2 * bound.max()
    np.testing.assert_allclose(np.diag(similar), 1, atol=bound.max() ** 2)


def test_equal_items_tie_to_the_bit(rng):
    tokens = quantize_int8(rng.normal(size=(5, 96)))
    keys = TokenKeys(np.arange(34) * 5, np.tile(tokens, (33, 1)))
    query = LabelledVectors(["a", "b"], unit(rng.normal(size=(2, 96))).astype(np.float32))
    scores = LateInteraction(query, np.array([0.6, 0.4]), keys, lambda _: "abcde").scores(ALL[:33])
    assert len(set(scores.tolist())) == 1


def test_tokens_in_several_arrays_are_those_of_one(rng):
    codes = quantize_int8(rng.normal(size=(40, 8)))
    indptr = np.array([0, 4, 4, 17, 25, 40])
    whole = TokenKeys(indptr, codes)
    parts = TokenKeys(indptr, codes[:17], None, [codes[17:25], codes[25:25], codes[25:]])
    for positions in ([0, 1, 2, 3, 4], [4, 0], [1], [3, 2, 4]):
        asked = np.array(positions)
        np.testing.assert_array_equal(parts.tokens(asked), whole.tokens(asked))


# --- the second pass ---


@pytest.mark.parametrize("depth", [2, 10, 100])
def test_parts_add_up_for_every_item(first, second, depth, assert_adds_up):
    head = rerank(
        fuse([first, replace(first_of(ALL), name="other")], [0.7, 0.3]), second, 0.2, depth=depth
    )
    assert head.scores.dtype == np.float32
    for i in ALL:
        assert_adds_up([part.value for part in head.parts(i)], head.scores[i])
        shares = head.by_names([i])[0]
        assert list(shares) == head.name.split("+") == ["first", "other", "token"]
        token = [part.value for part in head.parts(i) if part.head == "token"]
        assert_adds_up(token, shares["token"])


def test_the_best_stay_the_same_ones_and_the_rest_in_order(first, second):
    head = rerank(first, second, 5.0, depth=20)
    before, after = (top_k(scores, N_ITEMS) for scores in (first.scores, head.scores))
    assert set(after[:20]) == set(before[:20])
    assert after[:20].tolist() != before[:20].tolist()
    assert after[20:].tolist() == before[20:].tolist()


def test_the_second_pass_makes_no_item_a_hit(first, second):
    hits = first.scores > 0
    # As a filter leaves only items below the mean, of which some are the best.
    head = rerank(first, second, 0.3, mask=~hits)
    assert (head.addends[-1].scores[~hits] > 0).any()
    assert head.above_mean().covered.tolist() == hits.tolist()


def test_the_lowest_candidate_and_whatever_has_no_tokens_get_the_same(first, second):
    head = rerank(first, second, 0.3, depth=N_ITEMS)
    added = head.addends[-1].scores
    assert added[EMPTY] == added.min() == np.delete(added, EMPTY).min()
    (own, common) = head.addends[-1].parts(EMPTY)
    assert own.value + common.value == pytest.approx(added.min(), abs=1e-6)
    assert own[:3] == ("token", None, NOT_COMPARED)


def test_the_constant_part_is_the_same_for_every_item(first, second):
    head = rerank(first, second, 0.3, depth=20)
    constants = [
        [part for part in head.addends[-1].parts(i) if part[1:3] == (None, None)]
        for i in range(N_ITEMS)
    ]
    assert constants == [constants[0]] * N_ITEMS
    assert len(constants[0]) == 1


def test_candidates_have_mean_0_and_a_deviation_of_the_weight(first, second):
    head = rerank(first, second, 0.3, depth=20)
    candidates = np.setdiff1d(top_k(first.scores, 20), [EMPTY])
    added = head.addends[-1].scores[candidates]
    assert added.mean() == pytest.approx(0, abs=1e-6)
    assert added.std() == pytest.approx(0.3, abs=1e-6)


def test_what_is_masked_or_unanswered_is_no_candidate(first, second):
    mask, covered = ALL % 2 == 0, ALL % 3 == 0
    head = rerank(first_of(first.scores, covered), second, 0.3, mask, depth=8)
    judged = [i for i in ALL if any(part.query for part in head.addends[-1].parts(i))]
    assert set(judged) == set(top_k(first.scores, 8, mask & covered)) - {EMPTY}
    assert head.covered is covered


def test_without_two_candidates_to_compare_the_first_pass_comes_back(first, second, items):
    nothing_else = np.isin(ALL, [EMPTY, 8])
    assert rerank(first, None, 0.3) is first
    assert rerank(first, second, 0.0) is first
    assert rerank(first, second, 0.3, np.zeros(N_ITEMS, dtype=bool)) is first
    assert rerank(first, second, 0.3, nothing_else) is first
    assert rerank(first, second, 0.3, nothing_else | (ALL == 9)) is not first
    alike = TokenKeys(np.arange(N_ITEMS + 1), np.zeros(N_ITEMS, dtype=np.int32), items[0])
    twins = LateInteraction(second.query, second.weights, alike, second.labels_of)
    assert rerank(first, twins, 0.3) is first


# --- words, their weights, and the encoders ---

TITLES = [
    "deep sea divers",
    "sea water",
    "the red car",
    "",
    "a redder season, a red car",
    "the sea",
]
TAGS = ["ocean", "ocean; water", "engines", "", "engines", "!"]


@pytest.fixture
def lexical():
    texts = [f"{title}\n{tags}" for title, tags in zip(TITLES, TAGS, strict=True)]
    return LexicalKeys.from_counts(*count_terms(texts, Analyzer().key_terms))


def test_rare_words_count_more_and_commas_nothing(lexical):
    found = late.idf(["sea", "divers", "zebra", ",", "Sea's"], lexical)
    assert 0 == found[3] < found[0] < found[1] < found[2]
    assert found[0] == pytest.approx(np.log(1 + (6 - 3 + 0.5) / (3 + 0.5)))


def test_a_query_without_words_has_no_second_pass(lexical):
    keys = TokenKeys(np.array([0, 1]), np.zeros((1, D), np.int8))
    for labels in ([], ["!", ","]):
        query = LabelledVectors(labels, np.zeros((len(labels), D), np.float32))
        assert late.late_interaction(query, keys, lexical, lambda _: []) is None


def test_a_token_without_a_vector_counts_nothing(lexical):
    keys = TokenKeys(np.array([0, 1]), np.eye(1, D))
    query = LabelledVectors(["sea", "divers"], np.eye(2, D)[::-1] * [[1], [0]])
    second = late.late_interaction(query, keys, lexical, lambda _: ["sea"])
    assert second.weights.tolist() == [1, 0]


def static_encoder():
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["[UNK]", "deep", "sea", "red", "car", "water", "di", "##vers", "ocean", "the"]
    vocabulary = {word: i for i, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    vectors = np.random.default_rng(1).normal(size=(len(words), D)).astype(np.float32)
    weights = np.array([float(word != "the") for word in words])
    return StaticEncoder(tokenizer, vectors).weighted(weights)


@pytest.fixture(params=["corpus", "static", "transformer"])
def encoder(request, tiny_bert):
    if request.param == "transformer":
        encoder = TransformerEncoder.from_folder(tiny_bert)
        # What a random model adds to every vector hides what sets them apart.
        for layer in encoder.encoder.layers:
            for norm in (layer.attention_norm, layer.feed_forward_norm):
                norm.weight, norm.bias = np.ones_like(norm.weight), np.zeros_like(norm.bias)
            output = layer.feed_forward.output
            output.weight, output.bias = 0 * output.weight, 0 * output.bias
            output = layer.attention.output
            output.weight, output.bias = 0.1 * output.weight, 0 * output.bias
        norm = encoder.embedding.norm
        norm.weight, norm.bias = np.ones_like(norm.weight), np.zeros_like(norm.bias)
        return encoder
    if request.param == "static":
        return static_encoder()
    return CorpusEncoder(n_components=3).fit(TITLES + TAGS).encoder_


def test_with_each_encoder_parts_bear_words_and_add_up(encoder, lexical, assert_adds_up):
    def tokens_of(position):
        return late.token_labels(encoder, [TITLES[position], TAGS[position]])

    found = [*late.item_tokens(encoder, [TITLES, TAGS])]
    indptr = np.cumsum([0, *map(len, found)])
    keys = TokenKeys(indptr, np.concatenate(found), encoder.table)
    for position in range(len(TITLES)):
        assert keys.lengths(np.array([position])) == [len(tokens_of(position))]
    query = encoder.read("red water, sea divers").tokens
    second = late.late_interaction(query, keys, lexical, tokens_of)
    np.testing.assert_allclose(np.linalg.norm(second.query.vectors, axis=1), 1, atol=1e-6)
    head = rerank(first_of(np.arange(6)[::-1] / 6), second, 0.2)
    assert head.name == "first+token"
    for position in range(len(TITLES)):
        assert_adds_up([part.value for part in head.parts(position)], head.scores[position])
    assert {part.query for part in head.parts(0)} >= set(query.labels)
    assert {part.key for part in head.parts(0)} >= set(tokens_of(0))


def test_a_token_less_similar_by_the_temperature_gets_an_eth_of_the_weight(lexical):
    """0.05, by the measurement that `TEMPERATURE` names."""
    turned = np.array([0.95, np.sqrt(1 - 0.95**2)])
    keys = TokenKeys(np.array([0, 2]), np.array([0, 1]), np.stack([[1.0, 0.0], turned]))
    query = LabelledVectors(["sea"], np.array([[2.0, 0.0]]))
    second = late.late_interaction(query, keys, lexical, lambda _: ["sea", "water"])
    expected = (np.e * 1 + 1 * 0.95) / (np.e + 1)
    assert second.scores(np.array([0]))[0] == pytest.approx(expected, abs=2e-6)


def test_many_texts_give_the_vectors_of_each(tiny_bert):
    encoder = TransformerEncoder.from_folder(tiny_bert)
    done = []
    found = list(encoder.tokens_many(TITLES, 99, lambda *step: done.append(step)))
    assert len(found[3]) == 0
    assert done[-1] == ("reading tokens", len(TITLES), len(TITLES))
    for stored, title in zip(found, TITLES, strict=True):
        vectors = encoder.read(title).tokens.vectors
        largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
        np.testing.assert_allclose(stored / 127, vectors / largest, atol=0.5 / 127 + 1e-4)


def test_words_without_a_direction_are_no_tokens():
    encoder = CorpusEncoder(n_components=3).fit(TITLES).encoder_
    encoder.vectors[encoder.vocabulary.rows(["sea"])[0]] = 0
    text = "Deep sea car zebra car"
    (rows,) = encoder.tokens_many([text], longest=9)
    assert encoder.read(text).tokens.labels == ["deep", "car", "car"]
    assert encoder.vocabulary.terms[rows].tolist() == [b"deep", b"car", b"car"]


def test_a_long_item_keeps_its_first_tokens(monkeypatch):
    monkeypatch.setattr(late, "LONGEST_ITEM", 2)
    found = late.item_tokens(static_encoder(), [TITLES])
    assert [len(rows) for rows in found] == [2, 2, 2, 0, 2, 2]


def test_keys_and_tokens_of_items_come_from_one_reading(encoder, monkeypatch):
    """Whatever the number of items that are held at a time."""
    fields, steps = [TITLES, TAGS], []
    tokens = [*late.item_tokens(encoder, fields)]
    whole = encode_items("head", encoder, fields, lambda *_: None)
    for name in ("ITEMS_PER_BATCH", "ROWS_PER_BATCH"):
        monkeypatch.setattr(text_encoder, name, 4)
    pieces = [
        *encoded_with_tokens(
            "head", encoder, fields, late.LONGEST_ITEM, lambda *step: steps.append(step)
        )
    ]
    assert len(pieces) == 2
    keys = np.concatenate([items.keys([0.3, 0.7]) for items, _ in pieces])
    np.testing.assert_allclose(keys, whole.keys([0.3, 0.7]), atol=1e-6)
    found = EncodedItems.joined([items for items, _ in pieces])
    for column, like in zip(found.columns, whole.columns, strict=True):
        np.testing.assert_allclose(column, like, atol=1e-6)
    assert (found.cut is None) == (whole.cut is None)
    assert found.cut is None or found.cut.tolist() == whole.cut.tolist()
    read = [rows for _, of_items in pieces for rows in of_items]
    for rows, like in zip(read, tokens, strict=True):
        np.testing.assert_allclose(rows.astype(int), like.astype(int), atol=1)
    if encoder.is_pretrained:
        assert steps[-1] == ("encoding with head", 12, 12)


def test_many_texts_read_at_once_have_the_rows_of_each(monkeypatch):
    monkeypatch.setattr(static, "BATCH", 4)
    encoder, steps = static_encoder(), []
    texts = [*TITLES, "deep\ud800", " \u200b"]
    found = encoder.tokens_many(texts, 99, lambda *step: steps.append(step))
    for rows, text in zip(found, texts, strict=True):
        tokens = encoder.read(text).tokens
        weighted = encoder.vectors[rows] * encoder.weights[rows, None]
        np.testing.assert_array_equal(weighted, tokens.vectors)
    assert steps == [("reading tokens", 4, 8), ("reading tokens", 8, 8)]


def test_code_that_the_catalog_does_not_have_is_as_rare_as_its_bare_words():
    texts = ["ac and dc", "ac again", "c++ here", "sea"]
    lexical = LexicalKeys.from_counts(*count_terms(texts, Analyzer().key_terms))
    whole, bare, known, plain = late.idf(["AC/DC", "dc", "C++", "here"], lexical)
    assert whole == bare
    assert known == plain

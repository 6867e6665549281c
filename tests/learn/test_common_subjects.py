"""Queries whose words the catalog lacks: what is subtracted, and what is enough."""

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.heads.answerability import LATIN, OTHER, WordStatistics
from qkvsearch.heads.common_subjects import (
    ITEM_SHARE,
    MAX_WORDS,
    N_NEIGHBOURS,
    QUERY_SHARE,
    CommonSubjects,
    SubjectsComponent,
    mean_of_nearest,
    subject_names,
    without_common,
)
from qkvsearch.heads.dense_keys import DenseKeys
from qkvsearch.learn.add import add_items
from qkvsearch.learn.calibration import unrelated_texts
from qkvsearch.learn.common_subjects import FAR, common_subjects
from qkvsearch.learn.merge import merge_segments
from qkvsearch.scores.components import Components, ScoreComponent
from qkvsearch.scores.fusion import Scores
from qkvsearch.store import Workspace
from qkvsearch.text.analysis import Analyzer
from tests.builds import republished

D = 64
RNG = np.random.default_rng(3)
# What an encoder has in common for all texts, and for texts of a language.
SHARED, OF_LANGUAGE = RNG.normal(size=D), {LATIN: RNG.normal(size=D), OTHER: RNG.normal(size=D)}


def meaning(number):
    return np.random.default_rng(number).normal(size=D)


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def embedded(number, letters):
    return unit(2 * SHARED + OF_LANGUAGE[letters] + meaning(number))


NUMBERS = {
    name: number
    for names in subject_names().values()
    for number, name in reversed(list(enumerate(names)))
}


class Multilingual:
    """An encoder to which a subject means the same in both languages, and all texts are similar."""

    def encode_many(self, texts):
        return np.array([self.encoded(text) for text in texts])

    encode_queries = encode_many

    def encoded(self, text):
        letters = LATIN if text.isascii() else OTHER
        return embedded(NUMBERS.get(text, hash_of(text)), letters)


class English(Multilingual):
    """To which all Chinese texts mean the same."""

    def encoded(self, text):
        return super().encoded(text) if text.isascii() else embedded(99_999, OTHER)


def hash_of(text):
    return 1_000 + sum(map(ord, text))


# A shop of bicycles and lamps.
IN_SHOP = [subject_names()[LATIN].index(name) for name in ("bicycles", "lamps")]
ITEMS = np.array([embedded(IN_SHOP[i % 2], LATIN) for i in range(20)])
ITEMS = unit(ITEMS + 0.05 * RNG.normal(size=ITEMS.shape))
TITLES = ["city bicycle", "desk lamp"] * 10


def made(encoder, titles=TITLES, languages=("en",), keys=ITEMS):
    return common_subjects(encoder, keys, titles, Analyzer(), languages)


def of(n, share=0.0, letters=OTHER):
    return WordStatistics(n, letters, share, 0.0, 0, {})


def scores_of(query, keys, subjects, letters=OTHER):
    scores = DenseKeys(keys).scored("e5", query, lambda row: Components.of([]))
    return without_common(scores, subjects.of_items(DenseKeys(keys), letters))


def test_the_names_are_the_same_subjects_in_the_same_order():
    names = subject_names()
    assert set(names) == {LATIN, OTHER}
    assert len(names[LATIN]) == len(names[OTHER]) > 200
    assert names[OTHER][names[LATIN].index("bicycles")] == "自行车"
    assert names[OTHER][names[LATIN].index("sleep")] == "睡眠"
    assert names[OTHER][-1] == "股票"
    assert names[LATIN][-1] == "shares"
    for of_letters in names.values():
        assert len(set(of_letters)) == len(of_letters)
    assert all(name.isascii() for name in names[LATIN])
    assert not any(name.isascii() for name in names[OTHER])


@pytest.mark.parametrize(
    ("letters", "has"), [(OTHER, ("自行车", "灯")), (LATIN, ("bicycles", "lamps"))]
)
def test_what_the_catalog_has_is_answered_and_what_it_lacks_is_not(letters, has):
    encoder = Multilingual()
    subjects = made(encoder)
    assert subjects.letters == LATIN

    def is_answered(name):
        query = encoder.encoded(name)
        scores = scores_of(query, ITEMS, subjects, letters)
        return subjects.answers(scores, query, of(1, letters=letters)).any()

    assert all(map(is_answered, has))
    lacking = [name for name in subject_names()[letters] if name not in has]
    assert np.mean([is_answered(name) for name in lacking]) <= 1 - FAR


@pytest.mark.parametrize("letters", [LATIN, OTHER])
def test_the_level_is_the_quantile_of_the_subjects_as_queries(letters):
    encoder = Multilingual()
    subjects = made(encoder)
    queries = encoder.encode_queries(subject_names()[letters])
    common = np.sort(ITEMS @ queries.T, axis=1)[:, -N_NEIGHBOURS:].mean(axis=1)
    common -= common.mean()
    of_queries = np.sort(queries @ subjects.texts.T, axis=1)[:, -N_NEIGHBOURS:].mean(axis=1)
    best = (queries @ ITEMS.T - ITEM_SHARE * common).max(axis=1) - QUERY_SHARE * of_queries
    assert subjects.levels[letters] == pytest.approx(np.quantile(best, FAR), abs=1e-5)
    assert subjects.level_of_sentences not in subjects.levels.values()


def test_texts_that_the_catalog_may_be_about_do_not_speak_against_it():
    encoder = Multilingual()
    texts = unrelated_texts().subjects["English"]
    # A catalog about the first two of them.
    about = encoder.encode_many(texts[:2])
    subjects = made(encoder, keys=np.repeat(about, 10, axis=0))
    assert (subjects.texts @ about.T).max() < 0.999
    assert 0.5 * len(texts) < len(subjects.texts) < len(texts)


def test_an_item_in_the_language_of_the_query_does_not_win_by_it():
    encoder = Multilingual()
    # One item in Chinese, about something else.
    keys = np.concatenate([ITEMS, [embedded(5_000, OTHER)]])
    subjects = made(encoder, keys=keys)
    query = embedded(IN_SHOP[0], OTHER)
    alone = keys @ query
    compared = scores_of(query, keys, subjects).scores
    assert compared.argmax() % 2 == 0
    assert compared.argmax() < 20
    # What the language alone gives is a smaller part of the scores than of the cosines.
    lead = lambda scores: scores[-1] - scores[1]  # noqa: E731
    assert lead(compared) < lead(alone)


def test_scores_and_their_parts_are_less_by_what_is_common():
    scores = Scores(
        "e5",
        np.array([0.9, 0.8], np.float32),
        lambda row: Components.of([ScoreComponent("e5", "灯", "lamp", float([0.9, 0.8][row]))]),
    )
    compared = without_common(scores, np.array([0.25, 0.5], np.float32))
    np.testing.assert_allclose(compared.scores, [0.65, 0.3], atol=1e-6)
    for row in range(2):
        parts = compared.parts(row)
        assert sum(part.value for part in parts) == pytest.approx(compared.scores[row], abs=1e-6)
        assert len(list(parts)) == 2
    # The average item loses nothing.
    subjects = made(Multilingual())
    assert subjects.of_items(DenseKeys(ITEMS), OTHER).mean() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("words", "compares"),
    [
        (of(2), True),
        (of(2, share=0.49), True),
        (of(2, share=0.5), False),
        (of(40), True),
        (of(2, letters=LATIN), True),
        (of(2, share=0.5, letters=LATIN), False),
        (of(MAX_WORDS + 1, letters=LATIN), False),
    ],
)
def test_only_queries_whose_words_cannot_tell_are_compared(words, compares):
    assert english(0.0, 0.0).compares(words) == compares


def english(level, level_of_sentences, texts=None):
    """Those of a catalog in English."""
    texts = np.zeros((12, D), np.float32) if texts is None else texts
    of_letters = {LATIN: ITEMS, OTHER: ITEMS}
    levels = {LATIN: level + 1, OTHER: level}
    return CommonSubjects(LATIN, texts, of_letters, levels, level_of_sentences)


def test_a_sentence_has_a_level_of_its_own():
    subjects = english(0.1, 0.3)
    query = np.zeros(D, np.float32)
    scores = scores_like([0.2, 0, 0, 0, 0])
    assert not subjects.answers(scores, query, of(1, letters=LATIN)).any()
    assert subjects.answers(scores, query, of(MAX_WORDS)).tolist() == [True, *[False] * 4]
    assert not subjects.answers(scores, query, of(MAX_WORDS + 1)).any()


def scores_like(values):
    return Scores("e5", np.array(values, np.float32), lambda row: Components.of([]))


def test_what_the_query_has_in_common_with_other_texts_counts_against_it():
    query = unit(np.ones(D))
    subjects = english(0.1, 0.1, np.repeat(query[None], 12, axis=0))
    enough = 0.1 + QUERY_SHARE
    scores = scores_like([enough + 0.01, enough - 0.01, 0, 0, 0, 0, 0])
    assert subjects.answers(scores, query, of(1)).tolist() == [True, *[False] * 6]


def test_of_a_query_that_is_similar_to_all_items_few_answer_it():
    subjects = english(0.1, 0.1)
    query, values = np.zeros(D, np.float32), np.linspace(0.8, 0.9, 100)
    assert 10 < subjects.answers(scores_like(values), query, of(1)).sum() < 25
    # The best one does in any case, also of one or two items.
    for few in ([0.5], [0.5, 0.4], [0.5, 0.5, 0.4]):
        answers = subjects.answers(scores_like(few), query, of(1))
        assert answers[0]
        assert not answers[-1] or len(few) == 1


def test_few_subjects_are_all_near():
    cosines = np.array([[0.1, 0.5], [0.3, 0.2]])
    np.testing.assert_allclose(mean_of_nearest(cosines), [0.3, 0.25])


@pytest.mark.parametrize(
    ("encoder", "titles", "languages"),
    [
        (English(), TITLES, ("en",)),
        (Multilingual(), ["настольная лампа", "велосипед"] * 10, ("ru",)),
        (Multilingual(), ["机器人", "灯"] * 10, ("ja", "zh")),
    ],
)
def test_catalogs_without_subjects_go_without(encoder, titles, languages):
    assert made(encoder, titles, languages) is None


def test_a_catalog_is_in_the_letters_of_most_titles():
    assert made(Multilingual(), ["城市自行车", "台灯"] * 10, ("zh",)).letters == OTHER
    assert made(Multilingual(), ["LED 台灯 PRO", "Kugelschreiber"] * 10, ("de",)).letters == LATIN


def test_what_is_stored_is_loaded_and_merged_and_taken_away(tmp_path):
    items = pd.DataFrame({"id": ["a", "b"], "title": ["red boat", "blue sea"]})
    qkv.build(tmp_path, items=items, encoder="corpus").close()
    part, subjects = SubjectsComponent("lsa"), made(Multilingual())

    def loaded():
        with qkv.open(tmp_path) as engine:
            assert engine.snapshot.damaged() == []
            return engine.models.subjects

    republished(tmp_path, lambda contents: part.store(contents, subjects))
    add_items(Workspace(tmp_path), pd.DataFrame({"id": ["c"], "title": ["green hill"]}))
    for _ in range(2):
        stored = loaded()
        assert (stored.letters, stored.level_of_sentences) == (LATIN, subjects.level_of_sentences)
        assert stored.levels == subjects.levels
        np.testing.assert_array_equal(stored.texts, subjects.texts)
        for letters in (LATIN, OTHER):
            np.testing.assert_array_equal(stored.subjects[letters], subjects.subjects[letters])
        merge_segments(Workspace(tmp_path))
    republished(tmp_path, lambda contents: part.store(contents, None))
    assert loaded() is None


def test_a_chinese_catalog_with_titles_in_latin_letters_is_chinese():
    assert made(Multilingual(), ["Aurora X100 PRO", "Cedar Z9"] * 10, ("zh", "en")).letters == OTHER

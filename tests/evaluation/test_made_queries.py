"""Made queries: that each has its answers, and what a report on them adds up to."""

from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest

import qkvsearch
from qkvsearch.errors import DataError
from qkvsearch.evaluation.made_queries import alike, alike_by_sentence, alike_by_title, kinds
from qkvsearch.evaluation.made_queries import source as sources
from qkvsearch.evaluation.made_queries.alike import Alike
from qkvsearch.evaluation.made_queries.alike_by_sentence import AlikeBySentence
from qkvsearch.evaluation.made_queries.alike_by_title import AlikeByTitle
from qkvsearch.evaluation.made_queries.description import Description
from qkvsearch.evaluation.made_queries.description_clause import DescriptionClause
from qkvsearch.evaluation.made_queries.halves import Half, half_of, is_held_out
from qkvsearch.evaluation.made_queries.kinds import (
    FOR_HEADS,
    KINDS,
    KINDS_BY_NAME,
    kinds_that_count,
    make_queries,
)
from qkvsearch.evaluation.made_queries.query_kind import HEADS, MadeQuery
from qkvsearch.evaluation.made_queries.related import RelatedWords
from qkvsearch.evaluation.made_queries.report import rank_of_answer, wilson
from qkvsearch.evaluation.made_queries.source import QueriedCatalog
from qkvsearch.evaluation.made_queries.title_beginning import TitleBeginning
from qkvsearch.evaluation.made_queries.title_synonym import TitleSynonym
from qkvsearch.evaluation.made_queries.title_typo import TitleTypo, mistyped
from qkvsearch.evaluation.made_queries.title_word_left_out import TitleWordLeftOut
from qkvsearch.evaluation.made_queries.title_words_swapped import TitleWordsSwapped
from qkvsearch.evaluation.made_queries.value_and_word import ValueAndWord
from qkvsearch.evaluation.made_queries.words_among_alike import WordsAmongAlike
from qkvsearch.rank.query_language import parse_query

N_ITEMS = 120
TOPICS = ("sea", "music", "farm", "space")
# Other words than these have no meaning in any table.
SYLLABLES = ("ba", "do", "fi", "gu", "ke", "lo", "mi", "nu", "pa", "re", "so", "tu")


@pytest.fixture(scope="module")
def build_of(tmp_path_factory):
    """Builds a catalog, and returns the engine."""

    def build(items, **options):
        folder = tmp_path_factory.mktemp("made")
        return qkvsearch.build(folder / "ws", items=items, encoder="corpus", **options)

    return build


@pytest.fixture(scope="module")
def topics(build_of):
    """Titles of four words and descriptions of two sentences: of one topic each, 20 of 50."""
    rng = np.random.default_rng(5)
    words = np.array([a + b + c + "x" for a, b, c in product(SYLLABLES, repeat=3)])
    by_topic = rng.permutation(words)[: 50 * len(TOPICS)].reshape(len(TOPICS), -1)
    rows = []
    for number in range(N_ITEMS):
        topic = number % len(TOPICS)
        own = rng.permutation(by_topic[topic])[:20]
        text = f"{' '.join(own[:10])}. {' '.join(own[10:])}."
        title = " ".join(own[:4])
        rows.append({"id": number, "title": title, "kind": TOPICS[topic], "text": text})
    columns = qkvsearch.Columns(id="id", title="title", text=("title", "kind", "text"))
    return build_of(pd.DataFrame(rows), columns=columns)


@pytest.fixture(scope="module")
def twelve(build_of):
    """Twelve titles of two words, in three colours."""
    titles = [
        f"{a} {b}" for a in ("Red", "Blue", "Grey") for b in ("tent", "kettle", "rope", "lamp")
    ]
    return build_of(pd.DataFrame({"id": range(12), "title": titles}))


@pytest.fixture(scope="module")
def german(build_of, tmp_path_factory):
    synonyms = tmp_path_factory.mktemp("made") / "synonyms.txt"
    synonyms.write_text("Fahrradschlauch, Reifenschlauch\n", encoding="utf-8")
    titles = [
        "Haustürschlüssel aus gehärtetem Stahl",
        "Fahrradschlauch für breite Reifen",
        "Gartenschlauch mit stabiler Kupplung",
        "Wasserkocher aus gebürstetem Edelstahl",
    ]
    items = pd.DataFrame({"id": range(4), "title": titles})
    return build_of(items, language="german", synonyms=synonyms)


@pytest.fixture(scope="module")
def chinese(build_of):
    titles = ["霸王别姬与北京往事", "重庆森林里的爱情", "花样年华的旧上海", "卧虎藏龙青冥宝剑"]
    return build_of(pd.DataFrame({"id": range(4), "title": titles}))


def made(kind, engine, seed=0):
    """All queries of a kind, and the titles of the items that they were made of."""
    source = QueriedCatalog(engine.current_build)
    queries = list(kind.make(source, np.random.default_rng(seed)))
    return [(query, source.titles[query.item]) for query in queries]


# --- each kind ---


def test_the_beginning_of_a_title_is_its_first_half(topics):
    queries = made(TitleBeginning(), topics)
    assert len(queries) > 50
    assert all(query.text == " ".join(title.split()[:2]) for query, title in queries)
    assert "title_as_it_is" not in {
        query.kind for query in make_queries(topics.current_build, 0, 5)
    }


def test_the_beginning_of_a_chinese_title_is_half_of_its_characters(chinese):
    queries = made(TitleBeginning(), chinese)
    assert {query.text for query, _ in queries} == {"霸王别姬", "重庆森林", "花样年华", "卧虎藏龙"}


def test_a_word_is_left_out_or_two_are_swapped(topics):
    for query, title in made(TitleWordLeftOut(), topics):
        left_out = Counter(title.split()) - Counter(query.text.split())
        assert left_out.total() == 1
        assert len(query.text.split()) == 3
    for query, title in made(TitleWordsSwapped(), topics):
        assert Counter(query.text.split()) == Counter(title.split())
        assert sum(a != b for a, b in zip(query.text.split(), title.split(), strict=True)) == 2


@pytest.mark.parametrize("catalog", ["topics", "german", "twelve"])
def test_a_typo_changes_one_word_and_not_its_first_letter(catalog, request):
    queries = made(TitleTypo(), request.getfixturevalue(catalog))
    assert queries
    for query, title in queries:
        pairs = zip(query.text.split(), title.lower().split(), strict=True)
        ((typed, right),) = [(typed, right) for typed, right in pairs if typed != right]
        assert typed[0] == right[0]
        assert abs(len(typed) - len(right)) <= 1


def test_a_typo_in_chinese_is_one_character_and_the_title_is_meant(chinese):
    queries = made(TitleTypo(), chinese)
    assert queries
    for query, title in queries:
        assert query.text != title
        assert len(Counter(title) - Counter(query.text)) <= 1
        assert len(title) - 1 <= len(query.text) <= len(title)


def test_a_compound_is_mistyped_as_one_word():
    words = {mistyped("Haustürschlüssel", np.random.default_rng(seed)) for seed in range(20)}
    assert all(word[0] == "H" and abs(len(word) - 16) <= 1 for word in words)


def test_synonyms_are_those_of_the_owner(german, topics):
    queries = {query.text.lower() for query, _ in made(TitleSynonym(), german)}
    assert queries == {"reifenschlauch für breite reifen"}
    assert not made(TitleSynonym(), topics)


def test_a_value_is_asked_for_with_a_word_of_the_title(topics):
    for query, title in made(ValueAndWord(), topics):
        value, word = query.text.split()
        assert value in TOPICS
        assert word in title.split()


def test_half_of_a_description_is_in_other_words(build_of, tmp_path, twelve):
    words = "sailor harbor quiet boat storm lantern"
    others = "seaman port calm vessel tempest lamp"
    pairs = dict(zip(words.split(), others.split(), strict=True))
    synonyms = tmp_path / "synonyms.txt"
    synonyms.write_text("".join(f"{a}, {b}\n" for a, b in pairs.items()), encoding="utf-8")
    texts = [f"{words} granite summit violet copper meadow thunder", f"{others} forest " * 2]
    items = pd.DataFrame({"id": range(2), "title": ["Night", "Day"], "text": texts})
    columns = qkvsearch.Columns(id="id", title="title", text=("title", "text"))
    engine = build_of(items, columns=columns, synonyms=synonyms)
    query = next(query for query, title in made(Description(), engine) if title == "Night")
    asked = query.text.split()
    assert len(asked) == 12
    assert sum(word in pairs.values() for word in asked) >= 6
    assert query.answers == (query.item,)
    assert not made(Description(), twelve)


def test_words_of_a_title_are_among_words_that_the_item_lacks(topics):
    source = QueriedCatalog(topics.current_build)
    queries = made(WordsAmongAlike(), topics)
    assert queries
    for query, title in queries:
        (texts,) = source.texts([query.item], source.text_columns)
        own = set(title.split())
        words = set(query.text.split())
        # .7 of four words, rounded, and as many others as the title has.
        assert len(words & own) == 3
        others = words - own
        assert len(others) == 4
        assert not others & set("\n".join(texts).replace(".", "").split())


@pytest.mark.parametrize("kind", [AlikeByTitle(), AlikeBySentence()])
def test_items_that_are_alike_are_of_the_same_topic_and_never_the_item(kind, topics):
    queries = made(kind, topics)
    assert queries
    for query, _ in queries:
        assert query.made_of not in query.answers
        assert {row % len(TOPICS) for row in query.answers} == {query.made_of % len(TOPICS)}


def test_without_the_table_words_alone_tell_what_is_alike(topics, monkeypatch):
    source = QueriedCatalog(topics.current_build)
    monkeypatch.setattr(sources, "static_table", lambda: None)
    (texts,) = source.texts([8], source.text_columns)
    rows = Alike(source).to(8, "\n".join(texts))
    assert len(rows) == alike.N_BY_WORDS_ALONE
    assert 8 not in rows


@pytest.mark.parametrize("kind", [WordsAmongAlike(), AlikeByTitle(), AlikeBySentence()])
def test_heads_are_compared_only_where_the_table_tells_what_is_alike(
    kind, topics, german, chinese, monkeypatch
):
    """Words alone would flatter the lexical head."""
    monkeypatch.setattr(QueriedCatalog, "is_long", True)
    assert kind.carries_heads(QueriedCatalog(topics.current_build))
    for other in (german, chinese):
        assert not kind.carries_heads(QueriedCatalog(other.current_build))
    monkeypatch.setattr(sources, "static_table", lambda: None)
    assert not kind.carries_heads(QueriedCatalog(topics.current_build))


@pytest.mark.parametrize(
    "kind", [AlikeByTitle(), AlikeBySentence(), DescriptionClause(), TitleWordLeftOut()]
)
def test_signs_of_a_text_are_no_operators_of_a_query(kind, build_of, monkeypatch):
    for module in (alike_by_title, alike_by_sentence):
        monkeypatch.setattr(module, "MIN_ITEMS", 2)
    text = 'A "tent text" text:of -canvas^2 keeps rain* "off the people" title:in it all day long. '
    chinese = "-红色的帐篷和标题:蓝色的绳子。"
    titles = [
        f'"Red tent" -{n} title:red canvas^2' for n in ("alpine", "boreal", "desert", "polar")
    ]
    rows = {"id": range(4), "title": titles, "text": [text + chinese] * 4}
    engine = build_of(
        pd.DataFrame(rows),
        columns=qkvsearch.Columns(id="id", title="title", text=("title", "text")),
    )
    queries = made(kind, engine)
    assert queries
    for query, _ in queries:
        clauses = parse_query(query.text, lambda name: True).clauses
        assert not [str(clause) for clause in clauses if clause.is_condition or clause.boost != 1]


def test_a_word_is_looked_up_once_and_a_name_never(topics, monkeypatch):
    looked_up = []
    monkeypatch.setattr(RelatedWords, "_near", lambda self, token: looked_up.append(token.text))
    source = QueriedCatalog(topics.current_build)
    texts = ["Today London sees quiet harbor boats", "Quiet harbor boats see London"]
    rows = [(0, [text]) for text in texts]
    monkeypatch.setattr(QueriedCatalog, "shuffled_texts", lambda self, rng, columns: iter(rows))
    assert not [*Description().make(source, np.random.default_rng(0))]
    assert "quiet" in looked_up
    assert "london" not in looked_up
    assert len(looked_up) == len({*looked_up})


@pytest.mark.parametrize("kind", [WordsAmongAlike(), AlikeByTitle(), AlikeBySentence()])
def test_in_a_small_catalog_nothing_need_be_alike(kind, twelve, german, chinese):
    assert not any(made(kind, engine) for engine in (twelve, german, chinese))


# --- answers ---


def test_every_item_with_the_words_is_right(build_of):
    titles = ["Red tent for two", "Red tent for three", "Blue kettle of steel", "Grey rope of hemp"]
    engine = build_of(pd.DataFrame({"id": range(4), "title": titles}))
    by_text = {query.text: query for query, _ in made(TitleBeginning(), engine)}
    assert by_text["red tent"].answers == (0, 1)
    assert by_text["blue kettle"].answers == (2,)
    assert rank_of_answer(engine.current_build, by_text["red tent"]) == 1


def test_a_query_that_many_items_answer_is_not_asked(build_of):
    titles = [f"Red tent number {number}" for number in range(12)]
    engine = build_of(pd.DataFrame({"id": range(12), "title": titles}))
    assert not made(TitleBeginning(), engine)


def test_the_item_that_a_query_was_made_of_has_no_rank(twelve):
    build = twelve.current_build
    ids = twelve.search("Red tent", k=10)
    first, second = (int(hit.id) for hit in list(ids)[:2])
    row_of = {int(id_): row for row, id_ in enumerate(build.catalog.names(np.arange(12))[0])}
    query = MadeQuery("x", "Red tent", row_of[second], (row_of[second],), row_of[first])
    assert rank_of_answer(build, query) == 1
    assert rank_of_answer(build, query._replace(made_of=None)) == 2


# --- all kinds together ---


def test_the_same_seed_makes_the_same_queries(topics):
    build = topics.current_build
    assert make_queries(build, 3, 5) == make_queries(build, 3, 5)
    assert make_queries(build, 3, 5) != make_queries(build, 4, 5)


def test_kinds_that_compare_heads_have_more_queries(topics):
    source = QueriedCatalog(topics.current_build)
    queries = make_queries(topics.current_build, 0, 5)
    for_heads = {kind.name for kind in KINDS if HEADS in kind.carries(source)}
    counts = Counter(query.kind for query in queries)
    assert sum(counts[name] for name in for_heads) == 5 * FOR_HEADS
    assert counts["title_typo"] == 5


def test_the_means_are_over_kinds_that_compare_heads(topics, twelve):
    short = make_queries(topics.current_build, 0, 5)
    assert kinds_that_count(short, QueriedCatalog(topics.current_build)) == ["words_among_alike"]
    few = make_queries(twelve.current_build, 0)
    counted = kinds_that_count(few, QueriedCatalog(twelve.current_build))
    assert set(counted) == {query.kind for query in few}


def test_an_item_is_in_one_half_whatever_the_seed(topics):
    build = topics.current_build
    items = {half: set() for half in (*Half, None)}
    for seed in (0, 1):
        for query in make_queries(build, seed, 10):
            half = half_of(build, query)
            items[half] |= {*query.answers} | ({query.made_of} - {None})
            assert is_held_out(build, query) == (half is Half.HELD_OUT)
    n_found_on, n_held_out = len(items[Half.FOUND_ON]), len(items[Half.HELD_OUT])
    assert not items[Half.FOUND_ON] & items[Half.HELD_OUT]
    assert 0.2 < n_held_out / (n_found_on + n_held_out) < 0.8


def test_a_query_about_items_of_both_halves_is_in_neither(topics):
    build = topics.current_build
    of_half = {half_of(build, MadeQuery("x", "a", item)): item for item in range(build.n_items)}
    first, second = of_half[Half.FOUND_ON], of_half[Half.HELD_OUT]
    assert half_of(build, MadeQuery("x", "a", first, made_of=second)) is None
    assert half_of(build, MadeQuery("x", "a", first, (first, second))) is None


def test_only_some_kinds_are_made_and_as_among_all(topics):
    build = topics.current_build
    every = make_queries(build, 3, 5)
    only = {"title_typo", "words_among_alike"}
    assert make_queries(build, 3, 5, only=only) == [each for each in every if each.kind in only]


def test_a_source_that_exists_is_used(topics, monkeypatch):
    build = topics.current_build
    queries = make_queries(build, 0, 5)
    source = QueriedCatalog(build)
    monkeypatch.delattr(kinds, "QueriedCatalog")
    assert make_queries(build, 0, 5, source=source) == queries


TREES = "oak elm ash fir yew box bay fig nut pea rye tea".split()
TEAS = "红茶 绿茶 白茶 黑茶 花茶 奶茶 果茶 凉茶 抹茶 姜茶 冰茶 煎茶".split()


@pytest.mark.parametrize("titles", [TREES, TEAS, ["Red tent"] * 12], ids=["tree", "tea", "equal"])
def test_titles_are_asked_as_they_are_where_nothing_else_can_be(build_of, titles):
    report = build_of(pd.DataFrame({"id": range(12), "title": titles})).evaluate_search()
    (figures,) = report.kinds.values()
    assert [*report.kinds] == ["title_as_it_is"]
    assert figures.queries == len({*titles})
    assert figures.first == 1
    assert figures.counts
    assert any("as they are" in limit for limit in report.limits)


def test_what_allows_no_query_is_told_why(build_of):
    signs = build_of(pd.DataFrame({"id": range(3), "title": ["!!!", "???", "..."]}))
    with pytest.raises(DataError, match="titles have no words"):
        signs.evaluate_search()


# --- the report ---


@pytest.fixture(scope="module")
def steps():
    """The progress of the report."""
    return []


@pytest.fixture(scope="module")
def report(topics, steps):
    return topics.evaluate_search(random_state=2, progress=lambda *step: steps.append(step))


def test_shares_add_up(report):
    for figures in report.kinds.values():
        assert figures.among_ten + figures.missing == pytest.approx(1)
        assert figures.first <= figures.among_ten
        assert figures.interval[0] <= figures.first <= figures.interval[1]
        assert figures.first <= figures.mrr <= figures.among_ten
    assert report.facts["queries"] == sum(each.queries for each in report.kinds.values())


@pytest.mark.usefixtures("report")
def test_making_queries_reports_progress(steps):
    making = [(done, total) for stage, done, total in steps if stage == "making queries"]
    assert making == [(done, len(KINDS)) for done in range(len(KINDS) + 1)]
    assert steps[0][0] == "making queries"


def test_the_mean_is_that_of_the_kinds_that_count(report):
    counted = [figures for figures in report.kinds.values() if figures.counts]
    n = sum(figures.queries for figures in counted)
    mean = sum(figures.queries * figures.mrr for figures in counted) / n
    assert report.metrics["mrr@10"] == pytest.approx(mean)
    low, high = report.intervals["mrr@10"]
    assert low <= report.metrics["mrr@10"] <= high


def test_the_worst_examples_are_not_first(report, topics):
    titles = dict(zip(*_names(topics), strict=True))
    assert 0 < len(report.worst) <= 20
    for row in report.worst:
        assert row["rank"] is None or row["rank"] > 1
        assert titles[row["id"]] == row["title"]
        if row["found_by"] is not None:
            assert row["found_by"] in topics.current_build.models.head_weights


def _names(engine):
    return engine.current_build.catalog.names(np.arange(engine.current_build.n_items))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_report(report, topics):
    assert topics.evaluate_search(random_state=2).to_dict() == report.to_dict()


def test_a_report_says_where_no_kind_compares_heads(report, twelve, chinese):
    for engine in (twelve, chinese):
        of_few = engine.evaluate_search()
        assert not any(HEADS in figures.carries for figures in of_few.kinds.values())
        assert any("do not compare heads" in limit for limit in of_few.limits)
        assert any("English" in limit for limit in of_few.limits) == (engine is chinese)
        assert all(figures.counts for figures in of_few.kinds.values())
    assert not any("do not compare heads" in limit for limit in report.limits)
    left_out = [
        KINDS_BY_NAME[name].description
        for name, figures in report.kinds.items()
        if not figures.counts
    ]
    assert left_out
    assert any(all(name in limit for name in left_out) for limit in report.limits)


def test_the_interval_of_a_share_holds_it():
    assert wilson(0, 5)[0] == 0
    assert wilson(5, 5)[1] == 1
    low, high = wilson(50, 100)
    assert 1 - high == pytest.approx(low)

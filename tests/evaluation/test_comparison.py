"""Two builds side by side: what stayed, what moved, and that the reasons are true."""

import base64
import hashlib
import re
import shutil
from statistics import fmean

import pandas as pd
import pytest

import qkvsearch
from qkvsearch.engine import Engine
from qkvsearch.errors import DamagedError, DataError, QkvError, WorkspaceError
from qkvsearch.evaluation.comparison import compared
from qkvsearch.evaluation.comparison.comparison_page import LEADS
from qkvsearch.evaluation.comparison.sides import Group, Side
from qkvsearch.evaluation.made_queries.kinds import make_queries
from qkvsearch.heads.search_settings import SearchSettings
from qkvsearch.learn import merge as merging
from qkvsearch.learn.tuned_search import use_in_search
from qkvsearch.store import Workspace
from qkvsearch.store import workspace as workspaces
from qkvsearch.tables.judgements import read_texts

QUERIES = {
    "tea": "tea for two",
    "kettle": "red kettle",
    "lamp": "old lamp with a red shade",
    "without": "kettle -red",
    "typo": "kettel",
}
ITEMS = [
    (1, "Red tent for two", "sleeps two, and has a lamp hook"),
    (2, "Blue kettle", "boils water for tea"),
    (3, "Red kettle with a spout", "boils water, enough tea for two"),
    (4, "Green tent", "a tent with a lamp inside"),
    (5, "Old red lamp", "a lamp for a tent, with a shade"),
    (6, "Tea pot", "keeps tea warm"),
    (7, "Lamp shade", "red paper for an old lamp"),
    (8, "Two cups", "for tea or coffee"),
]


@pytest.fixture(scope="module")
def store_path(tmp_path_factory):
    """A shop after two changes: one item is other than before, one is new, one is gone."""
    path = tmp_path_factory.mktemp("store") / "ws"
    items = pd.DataFrame(ITEMS, columns=["id", "title", "text"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "MAX_CHANGED_SHARE", 9)
        with qkvsearch.build(path, items, encoder="corpus") as engine:
            changed = [(2, "Red kettle", "a red one"), (9, "Red lantern", "a lamp for your tent")]
            engine.add(pd.DataFrame(changed, columns=items.columns))
            engine.remove(3)
    return path


@pytest.fixture(scope="module")
def store(store_path):
    return Engine(store_path)


@pytest.fixture(scope="module")
def names(store):
    """The names of the builds, oldest first."""
    return [row["id"] for row in store.builds()][::-1]


@pytest.fixture(scope="module")
def old(store_path, names, tmp_path_factory):
    """The first build, opened as the current one of a copy."""
    path = shutil.copytree(store_path, tmp_path_factory.mktemp("old") / "ws")
    with Engine(path) as engine:
        engine.rollback(names[0])
        yield engine


@pytest.fixture(scope="module")
def report(store, names):
    return store.compare(names[0], queries=QUERIES)


def ids(engine, text, **options):
    return [hit.id for hit in engine.search(text, **options)]


def moves_of(report, query):
    return {move.id: move for of in report.queries if of.id == query for move in of.moves}


# --- what stayed and what moved ---


def check_moves(report, before, after):
    """The report says what two searches say. before, after: ids by query."""
    shares = [
        len({*before[query]} & {*after[query]}) / len(before[query])
        for query in before
        if before[query]
    ]
    assert report.kept == pytest.approx(fmean(shares))
    assert [query.id for query in report.queries] == [q for q in before if before[q] != after[q]]
    assert report.changed == len(report.queries) > 0
    for query in report.queries:
        was, now = before[query.id], after[query.id]
        for move in query.moves:
            assert move.before == (was.index(move.id) + 1 if move.id in was else None)
            assert move.after == (now.index(move.id) + 1 if move.id in now else None)
            assert move.before != move.after
            assert move.rose == ((move.after or 99) < (move.before or 99))
            assert move.by
        stayed = [item for item in was if item in now and was.index(item) == now.index(item)]
        assert {move.id for move in query.moves} == {*was, *now} - {*stayed}


def test_it_says_what_two_searches_say(store, old, report):
    before, after = (
        {query: ids(engine, text) for query, text in QUERIES.items()} for engine in (old, store)
    )
    check_moves(report, before, after)


def test_only_ten_hits_count(movies, all_heads):
    """Both sides are the same build, by other heads."""
    queries = {"1": "a war in space", "2": "love story in a big city"}
    report = movies.compare(queries=queries, heads="lexical")
    before = {query: ids(movies, text) for query, text in queries.items()}
    after = {query: ids(movies, text, heads="lexical") for query, text in queries.items()}
    check_moves(report, before, after)
    assert {move.before for query in report.queries for move in query.moves} <= {
        *range(1, 11),
        None,
    }


def test_a_build_compared_with_itself_is_the_same(store, names):
    report = store.compare(names[-1], names[-1], queries=QUERIES)
    assert (report.kept, report.changed, report.asked) == (1.0, 0, len(QUERIES))


def test_without_builds_the_one_before_is_compared_with_the_current_one(store, names):
    report = store.compare(queries=QUERIES)
    assert (report.before.id, report.after.id) == (names[1], names[2])
    assert store.compare(names[1], names[2], queries=QUERIES).to_dict() == report.to_dict()


def test_with_heads_alone_the_current_build_is_compared_with_itself(store, names):
    report = store.compare(queries=QUERIES, heads="lexical", before_heads="lexical")
    assert (report.before.id, report.after.id) == (names[2], names[2])
    assert report.changed == 0
    assert report.to_dict()["after"]["heads"] == ["lexical"]


def test_queries_without_hits_before_do_not_count_and_a_note_says_so(store, names):
    report = store.compare(names[0], queries={"a": "lantern", "b": "xyzzy"})
    assert report.kept == 1.0  # nothing could be lost
    assert report.changed == 1
    assert "a, b" in report.notes[0]
    assert moves_of(report, "a")[9].by == "new in the catalog"


def test_nothing_is_changed(store, names):
    before = store.workspace.state()
    store.compare(names[0], names[1], queries=QUERIES)
    assert store.workspace.state() == before
    assert store.snapshot.name == names[-1]


# --- the reasons ---


def score_of(engine, text, item, heads):
    """The score of any item, a hit or not."""
    build = engine.current_build
    fused = build.texts.fused(text, heads)
    return float(fused.scores[build.catalog.ids("items").find(item)])


def lead_in(engine, heads=None):
    """A function that returns an item's score minus the mean of others', by a search of its own."""

    def lead(text, item, others):
        mean = fmean(score_of(engine, text, other, heads) for other in others)
        return score_of(engine, text, item, heads) - mean

    return lead


def check_leads(report, before, after, assert_adds_up):
    """The parts of each change of a lead add up to what the scores say, and the reason names the
    largest part. before, after: from a query, an item and others to a lead.
    """
    n_checked = 0
    for query in report.queries:
        for move in query.moves:
            if move.parts is None:
                continue
            change = after(query.text, move.id, move.others)
            change -= before(query.text, move.id, move.others)
            assert_adds_up(move.parts.values(), change)
            assert (change > 0) == move.rose
            said = re.search(r": ([-+]\d+\.\d+) against", move.by)
            assert said, move.by
            assert (float(said[1]) > 0) == move.rose
            by_head = {}
            for group, value in move.parts.items():
                by_head[group.head] = by_head.get(group.head, 0) + value
            candidates = [*move.parts.values(), *by_head.values()]
            assert float(said[1]) == pytest.approx(
                min(candidates, key=lambda value: abs(value - float(said[1]))), abs=6e-4
            )
            best = (max if move.rose else min)(by_head.values())
            assert 0.5 * abs(best) - 1e-3 <= abs(float(said[1]))
            n_checked += 1
    return n_checked


def test_reasons_add_up_to_the_change_of_the_lead(store, old, names, assert_adds_up):
    """Between two builds, of which the second answers by one head."""
    report = store.compare(names[0], queries=QUERIES, heads="lexical")
    sides = lead_in(old), lead_in(store, ["lexical"])
    assert check_leads(report, *sides, assert_adds_up) > 1


def test_reasons_of_other_heads_add_up_to_the_change_of_the_lead(movies, assert_adds_up, all_heads):
    report = movies.compare(queries=["a war in space", "love story in a big city"], heads="lexical")
    sides = lead_in(movies), lead_in(movies, ["lexical"])
    assert check_leads(report, *sides, assert_adds_up) > 5
    texts = [move.by for query in report.queries for move in query.moves]
    assert any("which no longer counts" in text for text in texts)


def test_what_left_and_joined_the_catalog_is_told(report):
    moves = moves_of(report, "kettle")
    assert moves[3].by == "not in the catalog any more"
    assert "“Red kettle with a spout” above it left the catalog" in moves[2].by
    assert moves_of(report, "lamp")[9].by == "new in the catalog"


def test_a_new_item_above_is_the_reason_of_a_fall(tmp_path):
    rows = [(n, f"green tea number {n}") for n in range(1, 9)]
    items = pd.DataFrame(rows, columns=["id", "title"])
    with qkvsearch.build(tmp_path / "ws", items, encoder="corpus") as engine:
        first = engine.snapshot.name
        engine.add(pd.DataFrame([(0, "green tea")], columns=["id", "title"]))
        moves = moves_of(engine.compare(first, queries=["green tea"]), "1")
        assert moves[1].by == "“green tea” is new in the catalog, and above it"
        # Now in the other direction.
        back = moves_of(engine.compare(engine.snapshot.name, first, queries=["green tea"]), "1")
        assert back[0].by == "not in the catalog any more"
        assert back[1].by == "“green tea” above it left the catalog"


def test_a_column_that_has_the_word_now_is_named(store, names):
    moves = moves_of(store.compare(names[0], names[1], queries=["red"]), "1")
    assert "“red” is now found in text, title" in moves[2].by
    back = moves_of(store.compare(names[1], names[0], queries=["red"]), "1")
    assert "no head scores it above the average item any more" in back[2].by
    assert "“red” is no longer found in text, title" in back[2].by


def test_conditions_of_a_query_are_told(store, names, all_heads):
    moves = moves_of(store.compare(names[0], names[1], queries=["kettle -red"]), "1")
    assert moves[2].by == "it does not meet the conditions of the query any more"
    back = moves_of(store.compare(names[1], names[0], queries=["kettle -red"]), "1")
    assert back[2].by == "it meets the conditions of the query only now"


def test_another_reading_of_a_word_and_silence_are_told(tmp_path):
    rows = [(n, f"steel hammer number {n}") for n in range(1, 6)]
    items = pd.DataFrame(rows, columns=["id", "title"])
    with qkvsearch.build(tmp_path / "ws", items, encoder="corpus") as engine:
        first = engine.snapshot.name
        engine.add(pd.DataFrame([(1, "steel guitar")], columns=["id", "title"]))
        report = engine.compare(first, queries={"typo": "guitra", "word": "guitar"})
        assert "“guitra” is now read as “guitar”" in moves_of(report, "typo")[1].by
        assert moves_of(report, "word")[1].by == "before, no item had any of the words"
        back = engine.compare(engine.snapshot.name, first, queries={"typo": "guitra"})
        assert "“guitra” is no longer read as “guitar”" in moves_of(back, "typo")[1].by


@pytest.fixture(scope="module")
def weighed(tmp_path_factory):
    """A shop whose search weighs its lexical head less since the last build."""
    path = tmp_path_factory.mktemp("weighed") / "ws"
    qkvsearch.build(path, pd.DataFrame(ITEMS, columns=["id", "title", "text"]), encoder="corpus")
    heads = {"lexical": 0.1, "lsa": 0.1, "contrastive": 0.8}
    use_in_search(Workspace(path), SearchSettings(heads=heads), seed=0)
    return Engine(path)


def test_a_head_that_counts_more_or_less_is_told(weighed):
    report = weighed.compare(queries=QUERIES)
    by = {move.by for query in report.queries for move in query.moves}
    assert any("same word, which counts less now" in text for text in by)
    assert not any("same word, which counts more now" in text for text in by)
    back = weighed.compare(report.after.id, report.before.id, queries=QUERIES)
    by = {move.by for query in back.queries for move in query.moves}
    assert any("same word, which counts more now" in text for text in by)


def test_words_are_named_as_they_were_typed_whatever_they_count(store):
    """Each word is one group of a head: the head does not name "lamp ×3" beside "lamp"."""
    answer = Side(store.current_build).answer("lamp^3 kettel tent")
    assert answer.words == ["lamp", "kettel", "tent"]
    assert {group.word for group in answer.sums("5")} <= {"lamp", "kettel", "tent", None}
    assert Group("lexical", "lamp") in answer.sums("5")


def test_the_piece_of_a_chinese_query_that_an_item_has_is_named(tmp_path):
    rows = [
        (1, "海边的故事", "一个关于大海的故事"),
        (2, "魔法师的学徒", "他学习如何飞行"),
        (3, "城市之光", "一位流浪汉爱上卖花姑娘"),
        (4, "战争与和平", "俄国贵族的生活"),
        (5, "学校风云", "学校里的故事"),
    ]
    columns = ["id", "title", "text"]
    with qkvsearch.build(
        tmp_path / "ws", pd.DataFrame(rows, columns=columns), encoder="corpus"
    ) as engine:
        first = engine.snapshot.name
        engine.add(pd.DataFrame([(4, "战争与和平", "他在魔法学校读书")], columns=columns))
        report = engine.compare(first, queries=["关于魔法学校的电影"], heads="lexical")
        by = moves_of(report, "1")[4].by
    assert "“魔法学校” is now found in text" in by
    assert "电影" not in by.partition("is now found")[0].rpartition("“")[2]


# --- queries ---


def test_made_queries_are_those_of_the_catalog_before(store, names):
    before = store.compare(names[0], names[2], heads="lexical", before_heads="lsa")
    assert before.asked > 10
    again = store.compare(names[0], names[2], heads="lexical", before_heads="lsa")
    assert again.to_dict() == before.to_dict()
    with store._named_build(names[0]) as build:
        made = [query.text for query in make_queries(build, 0, compared.PER_KIND)]
    assert {query.text for query in before.queries} <= {*made}
    assert before.asked == len(made)


@pytest.mark.slow
def test_another_seed_makes_other_queries(things, monkeypatch, all_heads):
    monkeypatch.setattr(compared, "PER_KIND", 2)
    one, other = (things.compare(heads="lexical", random_state=seed) for seed in (0, 1))
    assert {query.text for query in one.queries} != {query.text for query in other.queries}


def test_a_file_has_a_query_a_line_with_or_without_ids(tmp_path):
    path = tmp_path / "queries.txt"
    path.write_text("\ufeffred kettle\n\ntea \r\n", encoding="utf-8")
    assert read_texts(path) == {"1": "red kettle", "3": "tea"}
    path.write_text("a\tred kettle\nb\ttea\n", encoding="utf-8")
    assert read_texts(path) == {"a": "red kettle", "b": "tea"}
    path.write_text("a\tred kettle\ntea\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"queries\.txt, line 2: expected id<TAB>text"):
        read_texts(path)
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"queries\.txt: no queries"):
        read_texts(path)


@pytest.mark.parametrize("queries", [[], {}, 7, [7], {"a": 7}])
def test_queries_that_are_none_are_refused(store, queries):
    with pytest.raises(DataError):
        store.compare(queries=queries)


# --- builds that cannot be compared ---


def test_an_unknown_build_names_those_there_are(store, names):
    with pytest.raises(WorkspaceError, match=f"no build 'nope'; there are {', '.join(names)}"):
        store.compare("nope", queries=QUERIES)


def test_the_first_build_has_none_before_it(things):
    with pytest.raises(WorkspaceError, match="no build before"):
        things.compare(queries=QUERIES)


def test_a_build_that_is_removed_meanwhile_is_an_error_in_one_line(
    store_path, names, tmp_path, monkeypatch
):
    """`compact` removes it after the list is read and before it is opened."""
    path = shutil.copytree(store_path, tmp_path / "ws")
    really_open = workspaces.Snapshot.of

    def removed_first(*args, **kwargs):
        monkeypatch.setattr(workspaces.Snapshot, "of", really_open)
        Workspace(path).drop_builds()
        shutil.rmtree(path / "builds" / names[1])
        return really_open(*args, **kwargs)

    with Engine(path) as engine:
        monkeypatch.setattr(workspaces.Snapshot, "of", removed_first)
        with pytest.raises(WorkspaceError, match=f"{names[1]} was removed meanwhile") as error:
            engine.compare(names[1], queries=QUERIES)
        assert "\n" not in str(error.value)


def test_a_damaged_build_says_so(store_path, names, tmp_path):
    path = shutil.copytree(store_path, tmp_path / "ws")
    with Engine(path) as engine:
        engine.rollback(names[0])
        manifest = path / "builds" / names[1] / "manifest.json"
        manifest.write_bytes(manifest.read_bytes()[:-9])
        with pytest.raises(DamagedError, match=f"{names[1]}.*qkvsearch repair"):
            engine.compare(names[1], queries=QUERIES)
        assert engine.search("tea")


def test_an_unknown_head_is_refused_with_the_name_of_its_build(store, names):
    with pytest.raises(QkvError, match=f"^build {names[2]}.*did you mean lexical"):
        store.compare(queries=QUERIES, heads="lexcial")
    with pytest.raises(QkvError, match=f"^build {names[0]}.*did you mean lexical"):
        store.compare(names[0], queries=QUERIES, before_heads="lexcial")


def test_all_hits_stayed_only_where_none_left(report):
    shares = dict.fromkeys(map(str, range(3000)), 1.0) | {"one": 0.9}
    almost = type(report)(report.before, report.after, shares, [])
    assert almost.kept < 1
    assert almost.summary.startswith("99.9% of the hits stayed")
    assert type(report)(report.before, report.after, {"a": 0.81}, []).summary.startswith("81.0%")


# --- the page ---


def test_the_page_loads_nothing_and_escapes_what_is_not_its_own(store, names):
    queries = {"<script>": "<b>red</b> kettle & tea", "zh": "红色 tent"}
    page = store.compare(names[0], queries=queries).to_page()
    assert "&lt;b&gt;red&lt;/b&gt; kettle &amp; tea" in page
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert not re.search(r"(?:src|href|url)\s*[=(]|@import|style=", page)
    style = re.search("<style>(.*?)</style>", page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in page


def test_a_page_without_changes_says_so(store, names):
    page = store.compare(names[0], names[0], queries=QUERIES).to_page()
    assert "All queries have the same hits" in page
    assert "<details" not in page


def test_a_page_explains_its_numbers_where_it_has_some(store, names, all_heads):
    assert LEADS in store.compare(queries=QUERIES, heads="lexical").to_page()
    assert LEADS not in store.compare(names[0], queries=["lantern"]).to_page()


def test_shares_are_counted_by_tenths(report):
    counts = report.by_share()
    assert sum(counts.values()) == sum(share is not None for share in report.shares.values())
    shares = {"a": 1.0, "b": 0.95, "c": 0.9, "d": 0.85, "e": 0.05, "f": 0.0, "g": None}
    page = type(report)(report.before, report.after, shares, [])
    found = {share: n for share, n in page.by_share().items() if n}
    assert found == {"100%": 1, "90–99%": 2, "80–89%": 1, "0–9%": 2}

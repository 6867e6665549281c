"""Search by ids and article numbers: found as they are, and no other query changes."""

import pandas as pd
import pytest

import qkvsearch as qkv

THINGS = ["rain jacket", "tent", "climbing rope", "headlamp", "wool sock"]


def shop(n=60, ids="{:06d}"):
    rows = [
        (
            ids.format(k * 467),
            f"{THINGS[k % 5]} {THINGS[k // 5 % 5]}",
            f"KX-{k}/{k * 7 % 10}B",
            f"{4006381000000 + k}",
        )
        for k in range(1, n + 1)
    ]
    return pd.DataFrame(rows, columns=["sku", "name", "model", "ean"])


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    with qkv.build(
        tmp_path_factory.mktemp("codes"), items=shop(), columns=COLUMNS, encoder="corpus"
    ) as engine:
        yield engine


COLUMNS = qkv.Columns(id="sku", title="name", text=["name"])


def first(engine, query, **options):
    return engine.search(query, k=1, **options)[0].id


@pytest.mark.parametrize(
    "query",
    [
        "000467",
        "(000467),",
        "tent 000467",
        "000467 rain",
        "KX-1/7B",
        "kx-1/7b",
        "kx-1/7b tent",
        "4006381000001",
        "zzqx 000467",
    ],
)
def test_an_item_is_found_by_its_codes_as_they_are(engine, query):
    assert first(engine, query) == "000467"


def test_004467_does_not_find_017464(tmp_path):
    items = shop(3).assign(sku=["017464", "004467", "044670"])
    with qkv.build(tmp_path, items=items, columns=COLUMNS, encoder="corpus") as engine:
        hits = engine.search("004467")
    assert [hit.id for hit in hits] == ["004467"]


def test_a_long_number_that_no_item_has_finds_nothing(tmp_path, tiny_bert):
    with qkv.build(tmp_path, items=shop(9), columns=COLUMNS, encoder=str(tiny_bert)) as engine:
        assert len(engine.search("tent"))
        assert not engine.search("4006381999999")
        assert not engine.search("000468")


def test_the_reason_names_the_column_and_parts_add_up(engine):
    hits = engine.search("KX-1/7B wool tent", k=3, explain=True)
    assert hits[0].matches["model"] == ["KX-1/7B"]
    assert ("lexical", "KX-1/7B", "model KX-1/7B") in [part[:3] for part in hits.explain(0)]
    for i, hit in enumerate(hits):
        assert sum(part.value for part in hits.explain(i)) == pytest.approx(hit.score, abs=1e-4)


def test_a_query_without_codes_ranks_as_in_a_build_without_any(engine, tmp_path):
    plain = (
        shop()
        .drop(columns=["model", "ean"])
        .assign(sku=[f"k{'abcdefghij'[k // 10]}{'abcdefghij'[k % 10]}" for k in range(60)])
    )
    with qkv.build(tmp_path, items=plain, columns=COLUMNS, encoder="corpus") as other:
        for query in ("rain jacket", "wool", "tent 12"):
            one, two = engine.search(query, k=60), other.search(query, k=60)
            assert [hit.title for hit in one] == [hit.title for hit in two]
            assert [hit.score for hit in one] == [hit.score for hit in two]


def numbered(tmp_path, titles):
    frame = pd.DataFrame({"id": range(1, len(titles) + 1), "title": titles})
    return qkv.build(tmp_path, items=frame, encoder="corpus")


SEAS = "red blue deep cold wide calm dark lost far old warm".split()
TITLES = [*(f"film of the {word} sea" for word in SEAS),
          "heat of the city", "twelve monkeys 12", "300"]  # fmt: skip


def test_12_monkeys_does_not_surface_the_item_with_id_12(tmp_path):
    with numbered(tmp_path, TITLES) as engine:
        assert first(engine, "12 monkeys") == 13
        assert 12 not in [hit.id for hit in engine.search("12 monkeys", heads="lexical")]


def test_a_number_alone_finds_the_item_titled_so_before_the_one_with_that_id(tmp_path):
    titles = TITLES + ["filler"] * 290
    titles[299] = "heat of the town"
    with numbered(tmp_path, titles) as engine:
        hits = engine.search("300", heads="lexical")
        assert [hit.id for hit in hits] == [14, 300]
        assert first(engine, "301") == 301  # no text has it


def test_a_year_alone_finds_the_films_of_it_before_the_one_with_that_id(tmp_path):
    titles = [f"{word} ({year})" for word in ("heat", "sea", "city") for year in range(5, 25)]
    with numbered(tmp_path, titles) as engine:
        hits = engine.search("12", k=4, heads="lexical")
        assert [hit.title for hit in hits] == ["heat (12)", "sea (12)", "city (12)", "heat (16)"]
        assert hits[3].id == 12
        hits = engine.search("59", k=4, heads="lexical")
        assert [hit.id for hit in hits] == [59]


def test_an_id_that_is_a_word_is_found_where_it_is_all_of_the_query(tmp_path):
    frame = pd.DataFrame(
        {"id": ["kettle-blue", "pot", "pan"], "title": ["for tea", "a pan", "a lid"]}
    )
    with qkv.build(tmp_path, items=frame, encoder="corpus") as engine:
        assert first(engine, "Kettle-Blue") == "kettle-blue"
        assert {hit.id for hit in engine.search("pan", heads="lexical")} == {"pot", "pan"}
        assert "pan" not in [hit.id for hit in engine.search("a pan", heads="lexical")]


def test_what_joins_is_found_by_its_codes_and_what_left_is_not(tmp_path):
    engine = qkv.build(tmp_path, items=shop(20), columns=COLUMNS, encoder="corpus")
    engine.add(shop(21).tail(1), COLUMNS)
    engine.remove("000467")
    assert first(engine, "KX-21/7B") == engine.search("009807", k=1)[0].id == "009807"
    assert not engine.search("4006381000001")
    engine.close()


def test_what_replaces_an_item_is_found_by_its_own_codes_alone(tmp_path):
    """In a number column beside gaps, too."""
    engine = qkv.build(tmp_path, items=shop(20), columns=COLUMNS, encoder="corpus")
    new = shop(3).tail(2).assign(model=["ZZ-1/1", "ZZ-2/2"], ean=[None, "4006389999999"])
    engine.add(new, COLUMNS)
    assert first(engine, "zz-2/2") == first(engine, "4006389999999") == new["sku"].iloc[1]
    assert not engine.search("4006381000003")
    assert new["sku"].iloc[1] not in [hit.id for hit in engine.search("KX-3/1B")]
    engine.close()


def test_a_code_alone_is_one_hit_and_others_only_anyway(tmp_path):
    items = shop().assign(sku=[f"QA {k} tent" for k in range(60)])
    with qkv.build(tmp_path, items=items, columns=COLUMNS, encoder="corpus") as engine:
        for code in ("KX-8/6B", "QA 7 tent", "qa 7  TENT"):
            assert [hit.id for hit in engine.search(code)] == ["QA 7 tent"]
            assert len(engine.search(code, anyway=True)) > (code != "KX-8/6B")
        alone, beside = (engine.search("KX-8/6B", anyway=anyway)[0] for anyway in (False, True))
        assert alone.score == pytest.approx(beside.score)
        assert len(engine.search("tent KX-8/6B")) > 1
        assert engine.search("QA 7 tent", heads=["semantic"])

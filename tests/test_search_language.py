"""Queries as people type them: operators, typos, prefixes, synonyms, stop words, facets, snippets,
on a shop of ten things; each answer's parts add up to its score.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qkvsearch as qkv
from qkvsearch.errors import QkvError

ITEMS = pd.DataFrame(
    [
        ("1", "Rain jacket", "A waterproof jacket for the mountains", "clothes", 1999, "red|blue"),
        ("2", "Jacket potatoes", "How to bake a potato in its jacket", "food", 2001, "brown"),
        ("3", "C++ for beginners", "Templates and pointers", "code", 2003, None),
        ("4", "C# for beginners", "Classes and garbage collection", "code", 2005, "red"),
        ("5", "Guitar lessons", "Chords and strumming for a first song", "music", 2007, "blue"),
        ("6", "The art of bread", "Sourdough and patience on a winter day", "food", 2009, None),
        ("7", "Mountain rivers", "Kayaks and rapids and cold rain", "sport", 2011, "blue"),
        ("8", "Winter tyres", "Snow and ice on the road", "cars", 2013, "black"),
        ("9", "SKU 004467 lamp", "A lamp with a number", "home", 2015, "white"),
        ("10", "Road to the mountains", "A journey on foot", "sport", 2017, None),
        ("11", "The The", "What it is and is not", "music", 2019, "white"),
    ],
    columns=["id", "title", "body", "genre", "year", "colours"],
)
SYNONYMS = {"coat": ["jacket"], "sweet potato": ["yam"], "yam": ["potatoes"]}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    types = {"colours": "list"}
    columns = qkv.Columns(id="id", title="title", text=["title", "body"], types=types)
    path = tmp_path_factory.mktemp("shop") / "ws"
    with qkv.build(path, items=ITEMS, columns=columns, encoder="corpus", synonyms=SYNONYMS) as shop:
        yield shop


def ids(ranking):
    return [str(hit.id) for hit in ranking]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('"rain jacket"', ["1"]),
        ('"jacket rain"', []),
        ("genre:music song", ["5"]),
        ("year:2003", ["3"]),
        ("year:2002..2005", ["3", "4"]),
        ("year:2005..2002", ["3", "4"]),
        ("year:2002..=2005", ["3", "4"]),
        ("colours:red", ["1", "4"]),
        ("-colours:red colours:blue", ["5", "7"]),
        ("−colours:red –colours:white colours:blue", ["5", "7"]),
        ("title:jacket", ["1", "2"]),
        ("body:jacket -title:potatoes", ["1"]),
        ("guit*", ["5"]),
        ("title:gui*", ["5"]),
        ('genre:"food" bread', ["6"]),
        ("genre:fo*", ["2", "6"]),
        ("id:4", ["4"]),
        ("-genre:code -genre:food -genre:sport -genre:music -jacket", ["8", "9"]),
    ],
)
def test_operators_must_hold(shop, query, found):
    assert sorted(ids(shop.search(query)), key=int) == found


def test_a_range_with_its_larger_end_first_is_turned_and_a_note_says_so(shop):
    (note,) = shop.search("year:2005..2002").notes
    assert note.startswith("year:2005..2002 was read as year:2002..2005:")
    assert shop.search("year:2002..2005").notes == []
    without = ids(shop.search("-year:2005..2002 jacket"))
    assert without
    assert not {"3", "4"} & set(without)


@pytest.mark.parametrize(
    ("query", "best"),
    [("jakcet", {"1", "2"}), ("gutiar", {"5"}), ("rainjacket", {"1"}), ("soudrough", {"6"}),
     ("C++", {"3"}), ("C#", {"4"}), ("004467", {"9"}), ("coat", {"1", "2"}), ("the the", {"11"}),
     ("rain coat", {"1"}), ("onfoot", {"10"})],
)  # fmt: skip
def test_words_as_they_are_typed(shop, query, best):
    assert ids(shop.search(query))[0] in best


def test_a_correction_is_told_and_is_a_part_of_the_score(shop):
    found = shop.search("jakcet")
    (change,) = found.corrections
    assert change == {"typed": "jakcet", "read": "jacket", "weight": 0.8, "kind": "spelling"}
    assert found.notes == ["No item has “jakcet”: searched for “jacket”."]
    assert {part.query for part in found.explain(0) if part.query} == {"jakcet → jacket ×0.8"}
    (change,) = shop.search("onfoot").corrections
    assert change == {"typed": "onfoot", "read": "on foot", "weight": 0.8, "kind": "blank"}
    head = shop.head("lexical", "jakcet")
    assert head.scores == pytest.approx(0.8 * shop.head("lexical", "jacket").scores)


def test_a_word_that_an_item_has_is_never_corrected(shop):
    """Nor is one that the language has: no item has jogging."""
    assert shop.search("rain").corrections == []
    assert shop.search("jogging bread").corrections == []


def test_a_boost_counts_in_every_head(shop):
    for head in shop.models.head_weights:
        alone = shop.head(head, "bread")
        both, boosted = shop.head(head, "rain bread"), shop.head(head, "rain bread^3")
        towards = [np.corrcoef(alone.scores, one.scores)[0, 1] for one in (both, boosted)]
        assert towards[1] > towards[0]


def test_the_last_word_may_be_unfinished(shop):
    assert ids(shop.search("guit", prefix=True))[0] == "5"
    assert ids(shop.search("rain jac", prefix=True))[0] == "1"
    assert ids(shop.search("jackte", prefix=True))[0] in {"1", "2"}
    begun = shop.search("the ar", prefix=True)
    assert ids(begun)[0] == "6"
    assert ("it begins as typed", 5.0) in [tuple(one) for one in begun.reasons(0)]
    (change,) = shop.search("guit", prefix=True).corrections
    assert (change["read"], change["kind"]) == ("guitar", "prefix")


def test_a_comparison_on_a_column_of_texts_names_the_column_and_its_type(shop):
    (note, *_) = shop.search("genre:<100").notes
    assert "'genre' is text" in note
    assert shop.search("year:>2100").notes[0] == "No item has year:>2100."


def test_a_range_on_a_column_of_texts_is_read_as_words_and_a_note_says_so(shop):
    [note] = [note for note in shop.search("bread genre:1..3").notes if "range" in note]
    assert note == "genre:1..3 was read as words: column 'genre' is text, and has no ranges."
    assert not any("range" in note for note in shop.search("bread year:2001..2003").notes)


GERMAN = """id;titel;preis;datum;auf lager
1;Regenjacke;12,50;13.03.2024;ja
2;Regenmantel;1.299,00;14.03.2024;nein
3;Regenhut;9,90;01.04.2024;ja
"""


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    folder = tmp_path_factory.mktemp("german")
    (folder / "waren.csv").write_text(GERMAN, encoding="utf-8")
    with qkv.build(folder / "ws", items=folder / "waren.csv", encoder="corpus") as engine:
        yield engine


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("preis:9,90", ["3"]),
        ("preis:9.9", ["3"]),
        ("preis:1.299,00", ["2"]),
        ("preis:..12,5", ["1", "3"]),
        ("preis:>12,5", ["2"]),
        ("datum:13.03.2024", ["1"]),
        ("datum:14.3.2024..1.4.2024", ["2", "3"]),
        ("datum:2024/03/14", ["2"]),
        ("auf_lager:ja", ["1", "3"]),
        ("preis:12,51", []),
    ],
)
def test_values_are_read_as_the_file_writes_them(german, query, found):
    assert sorted(ids(german.search(query))) == found


def test_a_column_whose_name_has_spaces_is_suggested_as_it_can_be_typed(german):
    [note] = [note for note in german.search("regen lager:ja").notes if "no column" in note]
    assert note == "There is no column “lager”. Did you mean auf_lager:ja?"


def test_nothing_is_said_where_nothing_answers(shop):
    assert "too common" in shop.search("of the and").notes[0]
    assert shop.search('"no such phrase"').notes[-1] == 'No item has "no such phrase".'
    for query, meant in [('"rain jakcet"', '"rain jacket"'), ("title:jakcet", "title:jacket")]:
        assert shop.search(query).notes[-1] == f"Did you mean {meant}?"
    found = shop.search('"no such phrase" bread')
    assert ids(found)[0] == "6"
    assert "without the quotation marks" in found.notes[-1]


def test_a_number_that_another_column_has_may_be_meant_there(shop):
    assert shop.search("lessons 2007").notes[-1] == "Did you mean year:2007?"
    for number in ("2008", "0" * 5000 + "2007", "9" * 5000):
        assert not any("mean" in note for note in shop.search(f"lessons {number}").notes)


def test_a_code_that_an_item_has_is_no_number_of_another_column(tmp_path):
    items = pd.DataFrame({"title": ["Lamp", "Chair"], "code": ["06.16.2", "07.1.10"]})
    items["height"] = [6, 7]
    with qkv.build(tmp_path / "w", items=items, encoder="corpus") as engine:
        assert engine.search("06.16.2")[0].title == "Lamp"
        assert not any("mean" in note for note in engine.search("06.16.2").notes)
        assert engine.search("lamp 6").notes[-1] == "Did you mean height:6?"


def test_a_year_that_a_column_of_dates_has_may_be_meant_there(tmp_path):
    dates = ["2003-05-01", "2004-06-01", "c. 1890"]
    items = pd.DataFrame({"title": ["Lamp", "Chair", "Bowl"], "made": dates, "first shown": dates})
    columns = qkv.Columns(text=["title"])
    with qkv.build(tmp_path / "w", items=items, columns=columns, encoder="corpus") as engine:
        for year in ("2004", "1885"):
            assert engine.search(year).notes[-1] == f"Did you mean made:{year}?"
            assert len(engine.search(f"made:{year}")) == 1
        for text in ("1979", "20", "2005"):
            assert not any("mean" in note for note in engine.search(f"lamp {text}").notes)


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("a 19th century vase", "made:1801..1900 or acquired:1801..1900"),
        ("posters of the 1890s", "made:1890..1899"),
        ("posters from the 1890s", "made:1890..1899"),
        ("lamps since the 1990s", "made:1990.. or acquired:1990.."),
        ("lamps before the 1930s", "made:..1929 or acquired:..1929"),
        ("1990年以后的灯", "made:1990.. or acquired:1990.."),
        ("late 20th-century lamps", "acquired:1961..2000"),
        ("20世纪的灯", "made:1901..2000 or acquired:1901..2000"),
        ("1930年代的灯", "made:1930..1939"),
        ("三十年代的灯", "made:1930..1939"),
        ("二十世纪30年代的灯", "made:1930..1939"),
        ("20年代的灯", ""),  # of which century?
        ("2004年", "made:2004 or acquired:2004"),
        ("lamps 18th century", ""),  # no item is as old
        ("a lamp from 1970", "acquired:1970"),
        ("a lamp before 1900", "made:..1899 or acquired:..1899"),
        ("made in 3000 before 7", ""),
        ("made:1890s lamps", ""),  # that is one already
        ("-1890s lamps", ""),
        ("a 1,891 page book", ""),
        ("lamp mix iv", ""),
    ],
)
def test_years_in_words_are_said_as_filters(dated, query, meant):
    suggested = [note for note in dated.search(query, anyway=True).notes if "mean" in note]
    assert suggested == ([f"Did you mean {meant}?"] if meant else [])
    if meant:
        assert len(dated.search(meant.split()[0]))


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    items = pd.DataFrame({"title": ["Lamp", "Chair", "Bowl"]})
    items["made"] = ["2004-06-01", "c. 1935", "1893"]
    items["acquired"] = ["2004-06-01", "c. 1970", "1850s"]
    items["pages"] = [1890, 1935, 2004]
    folder, columns = tmp_path_factory.mktemp("dated") / "w", qkv.Columns(text=["title"])
    with qkv.build(folder, items=items, columns=columns, encoder="corpus") as engine:
        yield engine


def test_items_that_are_nothing_like_the_query_are_no_hits_but_anyway(shop, all_heads):
    assert ids(shop.search("guitar")) == ["5"]
    assert len(shop.search("guitar", anyway=True)) == 10


def test_a_synonym_is_a_way_to_find_a_word(shop):
    weight = shop.head("lexical", "coat").scores
    assert weight == pytest.approx(0.8 * shop.head("lexical", "jacket").scores)
    assert ids(shop.search("sweet potato"))[0] == "2"


def test_synonyms_beyond_a_hundred_words_are_left_out_and_noted(tmp_path):
    endings = [f"{chr(97 + n // 10)}{chr(97 + n % 10)}" for n in range(60)]
    phrases = [f"word{ending} other{ending}" for ending in endings]
    titles = [*phrases, "tent", "rope"]
    items = {"id": titles, "title": titles}
    synonyms = {"tent": phrases, "rope": phrases[:50]}
    with qkv.build(
        tmp_path / "ws", items=pd.DataFrame(items), synonyms=synonyms, encoder="corpus"
    ) as engine:
        hits = {word: engine.search(word, k=60, heads=["lexical"]) for word in synonyms}
    left_out = "Only the first 100 words of synonyms count; more were left out."
    assert [left_out in hits[word].notes for word in synonyms] == [True, False]
    assert set(ids(hits["tent"])) == {*phrases[:50], "tent"}


def test_facets_count_what_matches(shop):
    found = shop.search("mountain", facets="genre,year,colours").facets
    assert found["genre"] == {"sport": 2, "clothes": 1}
    assert found["colours"] == {"blue": 2, "red": 1}
    assert sum(found["year"].values()) == 3
    with pytest.raises(QkvError, match="`facets`: no column 'gener'"):
        shop.search("mountain", facets="gener")


@pytest.mark.parametrize("heads", ["collaborative", "lexical,collaborative"])
def test_facets_count_the_hits_of_a_search_by_taste_too(videos, heads):
    found = videos.search("sea", user="w001", heads=heads, facets="category", anyway=True)
    assert len(found)
    assert sum(found.facets["category"].values()) > 0


def test_a_snippet_is_the_passage_that_answers(shop, tmp_path):
    assert shop.search("kayaks", snippet=True)[0].snippet == "Kayaks and rapids and cold rain"
    long = "Nothing to see here at all. " * 20
    items = pd.DataFrame(
        {"id": [1, 2], "title": ["One", "Two"], "body": [f"{long}A heron waits. {long}", "Else"]}
    )
    columns = qkv.Columns(text=["title", "body"])
    with qkv.build(tmp_path / "ws", items=items, columns=columns, encoder="corpus") as engine:
        shown = engine.search("heron", snippet=True)[0].snippet
    assert "A heron waits" in shown
    assert len(shown) < 200
    assert shown[0] == shown[-1] == "…"


def test_an_envelope_is_the_whole_answer(shop):
    found = shop.search("jakcet", facets="genre").envelope()
    assert list(found) == [
        "query",
        "notes",
        "corrections",
        "total",
        "total_weak",
        "no_hits",
        "facets",
        "hits",
    ]
    assert found["query"] == "jakcet"
    assert len(found["hits"]) == len(shop.search("jakcet"))


def test_items_that_join_are_found_by_phrases_and_typos(tmp_path):
    columns = qkv.Columns(id="id", title="title", text=["title", "body"])
    with qkv.build(tmp_path / "ws", items=ITEMS, columns=columns, encoder="corpus") as engine:
        new = pd.DataFrame([("12", "Velvet curtain", "Red velvet for a stage", "home", 2020, None)],
                           columns=ITEMS.columns)  # fmt: skip
        engine.add(new)
        engine.remove(["1"])
        for _ in range(2):
            assert ids(engine.search('"velvet curtain"')) == ["12"]
            assert ids(engine.search("vlevet"))[0] == "12"
            assert ids(engine.search('"rain jacket"')) == []
            assert ids(engine.search("title:velvet -jacket")) == ["12"]
            engine.compact()


@pytest.fixture(scope="module")
def syllables(tmp_path_factory):
    """Titles of two words out of 400, 20 for each first letter."""
    words = [f"{a}{b}{c}" for a in "bcdfghklmnprstvwxyzj" for b in "aeio" for c in "bdfgk"]
    titles = [f"{a} {b}" for a, b in zip(words, words[1:] + words[:1], strict=True)]
    items = pd.DataFrame({"id": range(len(titles)), "title": titles, "shelf": titles})
    columns = qkv.Columns(text=["title"])
    return qkv.build(tmp_path_factory.mktemp("s") / "w", items=items, columns=columns)


def test_each_operator_leaves_what_it_says_of_what_those_before_it_leave(syllables):
    titles = [row["title"] for row in map(syllables.show, range(400))]
    holds = {
        "b*": lambda title: any(word[0] == "b" for word in title.split()),
        "-bab": lambda title: "bab" not in title.split(),
        "shelf:bag": lambda title: "bag" in title.split(),
        '"baf bag"': lambda title: title == "baf bag",
    }
    for n in range(1, len(holds) + 1):
        operators = list(holds)[:n]
        expected = [i for i, title in enumerate(titles) if all(holds[o](title) for o in operators)]
        found = syllables.search(" ".join(operators), k=400, anyway=True)
        assert sorted(hit.id for hit in found) == expected
    assert syllables.search("b* shelf:caf").notes == ["No item has all of this."]
    assert syllables.search("b* q* z*").notes == ["No item has q*."]


def test_a_wildcard_for_many_words_is_looked_up_by_the_most_frequent(syllables, monkeypatch):
    monkeypatch.setattr("qkvsearch.rank.expansion.MAX_EXPANSION", 5)
    monkeypatch.setattr("qkvsearch.rank.query_notes.MAX_EXPANSION", 5)
    found = syllables.search("m*", k=400, anyway=True)
    assert found.notes == ["20 words begin with “m”; the 5 most frequent ones rank the hits."]
    assert len(found) == 21
    assert all(part.key in (None, "mab") for part in found.explain(0) if part.head == "lexical")


def test_operators_after_the_twentieth_are_left_out(syllables):
    found = syllables.search(
        " ".join(f"-{letter}*" for letter in "bcdfghklmnprstvwxyzj") + " -a -e"
    )
    assert found.notes[-1] == "Only the first 20 operators count; 2 more were left out."


def test_a_query_of_three_thousand_words(shop):
    words = " ".join(["rain", "jakcet", "zzqx", '"cold rain"', "-snow", "guit*", "road^2"] * 430)
    assert shop.search(words, k=3) is not None
    assert shop.search('"' * 3000) is not None
    assert ids(shop.search("a" * 10_000)) == []
    assert shop.search("- " * 3000) is not None


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(start, marks=[pytest.mark.slow] * (start % 0x1800 != 0))
        for start in range(0, 0x11000, 0x200)
    ],
)
def test_every_block_of_unicode_is_text(shop, start):
    letters = "".join(map(chr, range(start, start + 0x200)))
    for query in (letters, " ".join(letters), f'"{letters}"', f"-{letters}", f"title:{letters}*"):
        shop.search(query, k=1, anyway=True, explain=True, snippet=True)


@given(st.text(st.sampled_from('rain jackte-*":^2.título注意 \n'), max_size=30), st.booleans())
def test_whatever_is_typed_is_answered(shop, query, prefix):
    found = shop.search(query, prefix=prefix, facets="year", snippet=True)
    assert len(found) <= 10


# --- while a word is typed ---


@pytest.fixture(scope="module")
def typed_of(tmp_path_factory):
    """Many items about one word that begins as others do."""
    titles = [f"breathe slowly, part {n}" for n in range(6)]
    titles += ["bread from rye", "bread from wheat", "breakfast in bed", "guitar", "guide to Rome"]
    titles += [f"something else, number {n}" for n in range(20)]
    items = pd.DataFrame({"id": range(len(titles)), "title": titles})
    return qkv.build(tmp_path_factory.mktemp("typed") / "w", items=items)


def test_what_is_typed_may_become_each_word_that_begins_so(typed_of):
    found = [hit.title for hit in typed_of.search("bre", prefix=True, k=9)]
    assert {"bread from rye", "bread from wheat", "breakfast in bed"} <= set(found)
    assert all("brea" in title for title in found)
    both = {hit.title for hit in typed_of.search("gui", prefix=True, k=2)}
    assert both == {"guitar", "guide to Rome"}


def test_a_word_typed_whole_ranks_as_it_is(typed_of):
    found = [hit.title for hit in typed_of.search("bread", prefix=True, k=2)]
    assert set(found) == {"bread from rye", "bread from wheat"}
    whole = typed_of.search("breakfast", prefix=True, k=3)
    assert whole[0].title == "breakfast in bed"
    assert whole.corrections == []


def test_the_words_before_and_operators_keep_their_meaning(typed_of):
    asked = typed_of.current_build.texts.reader.read("bre* gui", True)
    ways = {term.text: {e.term for e in term.expansions} for term in asked.lookup.terms}
    first, last = ways.values()
    assert {"bread", "breakfast"} <= first
    assert not {"bread", "breakfast"} & last
    assert "guitar" in last


def test_without_typing_nothing_is_completed(typed_of):
    asked = typed_of.current_build.texts.reader.read("bre", False)
    assert (asked.lookup.certainty, asked.lookup.unfinished) == (1.0, None)


def test_few_unknown_columns_get_a_suggestion_and_each_once(videos):
    notes = videos.search("titel:xx " * 50 + " ".join(f"titel:x{n}" for n in range(50))).notes
    found = [note for note in notes if "no column" in note]
    assert 0 < len(found) == len(set(found)) <= 6


def test_words_for_the_kind_of_a_thing_weigh_little(tmp_path):
    titles = ["Bee movie", "Scary movie", "The champion of boxing", "A ring, a boxing story"]
    items = pd.DataFrame({"id": range(4), "title": titles})
    with qkv.build(tmp_path, items=items, encoder="corpus") as engine:
        hits = engine.search("a movie about boxing", heads="lexical")
        assert [hit.title for hit in hits[:2]] == titles[2:]
        assert engine.search("all about movies", heads="lexical")[0].title in titles[:2]


def test_words_for_the_kind_that_the_id_column_names_weigh_little(tmp_path):
    titles = ["Bee movie", "Scary movie", "The boxing champion", "A film about space"]
    items = pd.DataFrame({"movieId": range(4), "title": titles})
    columns = qkv.Columns(id="movieId", title="title")
    with qkv.build(tmp_path, items=items, columns=columns, encoder="corpus") as engine:
        assert engine.search("boxing movie", heads="lexical")[0].title == titles[2]
        assert engine.search("space film", heads="lexical")[0].title == titles[3]
        assert engine.search("movies", heads="lexical")[0].title in titles[:2]


def test_initials_in_capitals_are_found_with_and_without_full_stops(tmp_path):
    titles = ["Jules et Jim", "Ernest et Célestine", "E.T. the alien, with a long title"]
    items = pd.DataFrame({"id": range(3), "title": titles})
    with qkv.build(tmp_path, items=items, encoder="corpus") as engine:
        for text in ("ET", "E.T.", "et with a title"):
            assert engine.search(text, heads="lexical")[0].title == titles[2]


@pytest.mark.parametrize("searched", [True, False])
def test_a_sign_is_looked_for_in_the_cells_of_a_column(tmp_path, searched):
    items = pd.DataFrame(
        {
            "id": ["1", "2", "3"],
            "title": ["red pan", "blue pot", "green cup"],
            "lieferbar": ["✓", "×", "✓"],
        }
    )
    columns = qkv.Columns(text=["title", *(["lieferbar"] if searched else [])])
    with qkv.build(tmp_path / "ws", items=items, columns=columns, encoder="corpus") as shop:
        assert ids(shop.search("lieferbar:✓")) == ["1", "3"]
        assert ids(shop.search("-lieferbar:✓")) == ["2"]
        assert ids(shop.search("pan lieferbar:✓"))[0] == "1"
        assert shop.search("lieferbar:√").notes == ["No item has lieferbar:√."]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("霸王别姬", "“别姬”"),
        ("霸王別姬", "“別姬”"),  # as it was typed
        ("霸王 的茶", None),  # a particle and one character
        ("霸王 リング", "“リング”"),
        ("霸王 红茶 dragon", "“dragon”, “红茶”"),
        ("霸王龙", None),
        ("红茶", None),  # nothing of the query is known: another note says so
        ("霸王别姬霸王别姬", None),  # in longer queries most may be missing
    ],
)
def test_what_no_text_has_of_a_query_without_spaces_is_named(dinosaurs, query, named):
    said = [note for note in dinosaurs.search(query).notes if note.startswith("No text has")]
    assert said == ([] if named is None else [f"No text has {named}."])


@pytest.fixture(scope="module")
def dinosaurs(tmp_path_factory):
    titles = ["霸王龙大冒险", "恐龙星球", "动画电影"]
    items = pd.DataFrame({"id": range(len(titles)), "title": titles})
    with qkv.build(tmp_path_factory.mktemp("dinosaurs"), items=items, encoder="corpus") as engine:
        yield engine

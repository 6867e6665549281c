"""A build has a language: its texts, its queries and its learned encoders go by it."""

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.text.analysis import Analyzer

GERMAN = [
    ("r1", "Regenjacke für Damen", "Eine leichte Jacke gegen den Regen, mit Kapuze und Taschen"),
    ("h1", "Die alten Häuser der Stadt", "Bilder von Häusern, die es nicht mehr gibt"),
    ("b1", "Das Buch der Berge", "Was man über die Alpen wissen muss, für Wanderer und Kletterer"),
    ("k1", "Katzen verstehen", "Wie eine Katze spricht und was sie dir sagen will"),
    ("w1", "Wasser ist zum Waschen da", "Ein Lied, das wir alle kennen"),
]
FRENCH = [
    ("a1", "L’Amour fou", "Un film sur la passion et sur les amants qui se perdent"),
    ("c1", "Cuisine pour tous", "Des recettes de l'été et de l’hiver, avec des légumes"),
    ("o1", "Le parfum de L'Oréal", "Une histoire de la beauté dans le monde"),
    ("m1", "Les maisons de Provence", "Il y a des jardins et une terrasse dans chaque maison"),
]
SPANISH = [
    ("s1", "Las canciones de la guerra", "Una canción para los que no están"),
    ("s2", "El trabajo y la vida", "Lo que nos dice la gente de su trabajo y de sus días"),
    ("s3", "Cocina para niños", "Recetas con verduras y frutas, muy fáciles"),
]
RUSSIAN = [
    ("x1", "Книги о море", "Это книга для тех, кто любит море и корабли"),
    ("x2", "Синий автомобиль", "Он не новый, но очень быстрый"),
    ("x3", "Сады и цветы", "Как вырастить розы на даче, что для этого нужно"),
]
CODE = [
    ("p1", "Learn C++ in a month", "templates, classes and pointers for programmers"),
    ("p2", "Learn C# in a month", "classes and events for programmers on .NET"),
    ("p3", "Learn C in a month", "pointers and arrays for programmers"),
    ("m1", "The songs of AC/DC", "hard rock from Australia, played 24/7"),
    ("m2", "The best of R&B", "rhythm and blues from the radio"),
    ("t1", "A 3.5mm plug", "for headphones, with a cable"),
    ("f1", "L'Amour", "a French film with English titles"),
]


def built(path, rows, **options):
    items = pd.DataFrame(rows, columns=["id", "title", "text"])
    columns = qkv.Columns(text=["title", "text"])
    return qkv.build(path, items=items, columns=columns, encoder="corpus", **options)


def first(engine, query, **options):
    return engine.search(query, k=1, **options)[0].id


@pytest.mark.parametrize(
    ("rows", "language", "asked"),
    [
        (GERMAN, "german", {"Haus": "h1", "jacken": "r1", "Bücher": "b1", "KATZE": "k1"}),
        (FRENCH, "french", {"amour": "a1", "l'amour": "a1", "oreal": "o1", "maison": "m1",
                            "hiver": "c1"}),
        (SPANISH, "spanish", {"cancion": "s1", "canciones": "s1", "trabajos": "s2", "niño": "s3"}),
        (RUSSIAN, "russian", {"книгами": "x1", "синяя": "x2", "сад": "x3"}),
    ],
)  # fmt: skip
def test_a_catalog_is_searched_in_its_own_language(tmp_path, rows, language, asked):
    engine = built(tmp_path / "ws", rows)
    info = engine.info()
    assert (info["language"], info["language_chosen"]) == (
        language, f"guessed from {len(rows)} texts",
    )  # fmt: skip
    assert engine.models.analyzer == Analyzer(language)
    for head in ("lsa", "contrastive"):
        assert engine.models.encoder(head).analyzer == Analyzer(language)
    for query, wanted in asked.items():
        assert first(engine, query, heads=["lexical"]) == wanted, query
        assert first(engine, query) == wanted, query


def test_the_language_that_was_asked_for(tmp_path):
    engine = built(tmp_path / "ws", GERMAN, language="en")
    assert (engine.info()["language"], engine.info()["language_chosen"]) == (
        "english", "your choice",
    )  # fmt: skip
    assert not engine.search("Haus", heads=["lexical"])
    engine = built(tmp_path / "ws", GERMAN, language="none")
    assert not engine.search("Haus", heads=["lexical"])
    assert first(engine, "Häuser", heads=["lexical"]) == "h1"
    with pytest.raises(qkv.QkvError, match="no `language` 'xx'"):
        built(tmp_path / "other", GERMAN, language="xx")
    assert not (tmp_path / "other").exists()


def test_items_that_join_are_read_in_the_language_of_the_build(tmp_path):
    engine = built(tmp_path / "ws", GERMAN)
    engine.add(pd.DataFrame([("n1", "Zwei Wälder", "")], columns=["id", "title", "text"]))
    assert first(engine, "Wald", heads=["lexical"]) == "n1"
    engine.compact()
    assert first(engine, "Wald", heads=["lexical"]) == "n1"
    assert engine.info()["language"] == "german"
    (change,) = engine.search("Wasserbuch").corrections
    assert [change[name] for name in ("typed", "read", "kind")] == [
        "Wasserbuch", "wasser buch", "compound",
    ]  # fmt: skip


def test_a_word_finds_compounds_that_end_with_it_in_any_form(tmp_path):
    rows = [("t1", "Taschenlampen im Angebot", ""), ("m1", "Messer aus Stahl", "")]
    items = pd.DataFrame(rows, columns=["id", "title", "text"])
    engine = built(tmp_path / "ws", items, language="german")
    (hit,) = engine.search("Lampe", heads=["lexical"], explain=True)
    assert (hit.id, hit.matches) == ("t1", {"title": ["Taschenlampen"]})


def test_what_is_damaged_is_made_again_in_the_language_of_the_build(tmp_path):
    built(tmp_path / "ws", GERMAN)
    for name in ("lexical.terms", "lsa.terms"):
        (file,) = (tmp_path / "ws").rglob(f"{name}.npy")
        file.write_bytes(b"damaged")
    qkv.repair(tmp_path / "ws")
    engine = qkv.open(tmp_path / "ws")
    assert first(engine, "Haus", heads=["lexical"]) == "h1"
    assert first(engine, "Haus", heads=["lsa"]) == "h1"


def test_code_finds_what_is_written_so_first_and_bare_words_find_all(tmp_path, assert_adds_up):
    engine = built(tmp_path / "ws", CODE)
    asked = {
        "C++": "p1", "c#": "p2", "learn C++": "p1", "AC/DC": "m1", "ac dc": "m1", "R&B": "m2",
        "r & b": "m2", "24/7": "m1", "3.5mm": "t1", ".NET": "p2", "net": "p2", "amour": "f1",
        "l’amour": "f1",
    }  # fmt: skip
    for query, wanted in asked.items():
        assert first(engine, query) == wanted, query
    assert {hit.id for hit in engine.search("c", heads=["lexical"])} == {"p1", "p2", "p3"}
    # Nobody has this whole: its bare words count.
    assert first(engine, "C/C++") == "p1"
    assert first(engine, "DC/AC", heads=["lexical"]) == "m1"
    hits = engine.search("C++", k=2, heads=["lexical"], explain=True)
    assert [hit.id for hit in hits] == ["p1"]
    assert hits[0].matches == {"title": ["C++"]}
    found = engine.search("learn C++", k=3)
    for index, hit in enumerate(found):
        assert_adds_up([part.value for part in found.explain(index)], hit.score)


def test_a_word_of_any_language_of_the_catalog_is_no_misspelling(tmp_path):
    english = [
        ("e1", "What do we want?", "Songs that people sing in the streets when they want peace"),
        ("e2", "The rivers of Europe", "How they bend, and why some of them flood every spring"),
        ("e3", "Bread at home", "All that you need is flour, water, salt and a warm oven"),
    ]
    engine = built(tmp_path / "both", english + GERMAN[:3])
    assert sorted(engine.models.languages) == ["de", "en"]
    assert not engine.search("wann").corrections
    assert [change["read"] for change in engine.search("braed").corrections] == ["bread"]

    engine = built(tmp_path / "english", english)
    assert [change["read"] for change in engine.search("wann").corrections] == ["want"]

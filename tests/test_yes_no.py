"""Yes/no columns are asked in their own words, and codes that look like these stay codes."""

import pandas as pd
import pytest

import qkvsearch as qkv

WORDS = {
    "stock": ("yes", "no"),
    "lieferbar": ("ja", "nein"),
    "dispo": ("oui", "non"),
    "hay": ("sí", "no"),
    "налич": ("да", "нет"),
    "有货": ("有", "无"),
    "在售": ("是", "否"),
    "在庫": ("あり", "なし"),
    "متاح": ("نعم", "لا"),
}
LANGUAGES = ["NO", "JA", "NO", "JA"]
COUNTRIES = ["SI", "NO", "NO", "IT"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    items = pd.DataFrame({"id": [1, 2, 3, 4], "title": ["Tent", "Lamp", "Bag", "Rope"]})
    for name, (yes, no) in WORDS.items():
        items[name] = [yes, no, yes, no]
    items = items.assign(lang=LANGUAGES, country=COUNTRIES)
    folder = tmp_path_factory.mktemp("yes_no") / "ws"
    with qkv.build(folder, items=items, encoder="corpus") as shop:
        yield shop


def ids(ranking):
    return sorted(hit.id for hit in ranking)


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("case", [str, str.upper])
def test_a_column_is_asked_in_its_own_words(shop, name, case):
    yes, no = map(case, WORDS[name])
    assert ids(shop.search(f"{name}:{yes}")) == [1, 3]
    assert ids(shop.search(f"{name}:{no}")) == [2, 4]
    assert ids(shop.search(f"-{name}:{yes}")) == [2, 4]
    assert ids(shop.search(f"-{name}:{no}")) == [1, 3]


@pytest.mark.parametrize("name", WORDS)
def test_a_column_is_asked_in_other_words_too(shop, name):
    assert ids(shop.search(f"{name}:yes")) == ids(shop.search(f"{name}:ja")) == [1, 3]
    assert ids(shop.search(f"{name}:no")) == ids(shop.search(f"{name}:0")) == [2, 4]


@pytest.mark.parametrize("word", ["maybe", "2", "nope"])
def test_what_is_neither_yes_nor_no_matches_nothing(shop, word):
    ranking = shop.search(f"lieferbar:{word}")
    assert ids(ranking) == []
    assert f"lieferbar:{word}" in " ".join(ranking.notes)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("lang:no", [1, 3]),
        ("lang:JA", [2, 4]),
        ("-lang:NO", [2, 4]),
        ("country:NO", [2, 3]),
        ("country:it", [4]),
        ('country:"SI"', [1]),
        ("tent country:SI", [1]),
    ],
)
def test_codes_stay_codes_though_they_are_words_for_yes_and_no(shop, query, expected):
    assert ids(shop.search(query)) == expected

"""The script to paste into other sites' pages, and what it asks first. What it does there is in
`browser/test_box.py`.
"""

import gzip
import json
import re

import pandas as pd
import pytest

import qkvsearch
from qkvsearch.web import box
from qkvsearch.web.pages import words_of

SHOP = "https://shop.example"
FROM_SHOP = {"Origin": SHOP, "Sec-Fetch-Site": "cross-site"}
A_TAG = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}


def test_pages_of_other_sites_may_load_the_script_and_nothing_else(asking, videos_path, tmp_path):
    (tmp_path / "token").write_text("0123456789abcdef", encoding="utf-8")
    with asking(videos_path, token_file=tmp_path / "token", allow_origins=(SHOP,)) as client:
        for headers in ({}, A_TAG, FROM_SHOP):
            answer = client.get(box.ADDRESS, headers=headers)
            assert answer.status_code == 200
            assert "javascript" in answer.headers["content-type"]
            assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
            assert "set-cookie" not in answer.headers
        assert answer.headers["access-control-allow-origin"] == SHOP
        assert client.post(box.ADDRESS, headers=A_TAG).status_code == 403
        assert client.get("/api/v1/box", headers=A_TAG).status_code == 403


def test_it_is_small_and_one_script(client):
    script = client.get(box.ADDRESS).text
    assert len(gzip.compress(script.encode())) < 8000
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)
    assert not re.search(r"\b(cookie|localStorage|sessionStorage|innerHTML|eval)\b", script)
    for address in re.findall(r"https?://[\w.-]+", script):
        assert address == "http://www.w3.org"  # the name of SVG


@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_has_all_sentences_that_it_says(language):
    texts = json.loads(re.search(r"^const TEXTS = (.*);$", box.script(), re.MULTILINE)[1])[language]
    code = (box.FILES / "box.js").read_text(encoding="utf-8")
    assert set(re.findall(r'\bsay\("(\w+)"', code)) <= texts.keys()
    assert words_of(language)["box"].items() <= texts.items()
    reasons = {key for key in words_of(language)["search"] if key.startswith("r_")}
    assert reasons <= texts.keys()


@pytest.fixture(scope="module")
def columns_of(asking, tmp_path_factory):
    """What the box shows of a catalog."""

    def of(**columns):
        path = tmp_path_factory.mktemp("shop") / "ws"
        items = pd.DataFrame({"id": [1, 2], "title": ["A tent", "A rope"], **columns})
        qkvsearch.build(path, items=items, encoder="corpus")
        with asking(path) as client:
            return client.get("/api/v1/box").json()

    return of


def test_it_shows_the_image_the_address_and_the_price_of_an_item(columns_of):
    found = columns_of(
        cost=[1.5, 2.5],
        price=["€3.50", "€4"],
        photo=["https://shop.example/1.jpg", "https://shop.example/2.jpg"],
        url=["https://shop.example/1", "https://shop.example/2"],
        review=["https://other.example/1", "https://other.example/2"],
    )
    assert found["price"] == {"name": "price", "unit": "EUR"}
    assert (found["image"], found["link"]) == ("photo", "url")


def test_a_price_is_found_by_its_currency_or_its_name_in_chinese(columns_of):
    assert columns_of(width=[1, 2], paid=["$3", "$4"])["price"] == {"name": "paid", "unit": "$"}
    assert columns_of(商品价格=[3, 4])["price"]["name"] == "商品价格"
    nothing = columns_of(width=[1, 2])
    assert nothing == {"image": None, "link": None, "price": None}

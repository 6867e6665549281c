"""The course on the server: the same lessons as in its file, for everyone, in both languages."""

import re
import threading
import time

import pytest

from qkvsearch.lessons import LANGUAGES, LESSONS, language, lesson
from qkvsearch.lessons.exports.page import FILES, SCRIPTS, STYLES
from qkvsearch.lessons.exports.page.article import article
from qkvsearch.web import lesson_pages

QUICK = "self-attention"


def test_a_lesson_is_that_of_the_file(client):
    page = client.get(f"/learn/{QUICK}")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert article(lesson(QUICK), True) in page.text


def test_the_scripts_and_styles_are_the_files_and_nothing_else_of_their_folder(client):
    page = client.get(f"/learn/{QUICK}").text
    for name in (*STYLES, *SCRIPTS):
        assert f'"/learn/files/{name}"' in page
        assert client.get(f"/learn/files/{name}").content == (FILES / name).read_bytes()
    for name in ("bench.py", "page.html", "__init__.py", "nothing", ""):
        assert client.get(f"/learn/files/{name}").status_code == 404


def test_nothing_is_inline(client):
    for path in ("/learn", f"/learn/{QUICK}", "/inside", "/docs"):
        page = client.get(path).text
        assert not re.search(r"\sstyle=|<style|\son\w+=", page)
        scripts = re.findall(r"<script([^>]*)>", page)
        assert all("src=" in script or "application/json" in script for script in scripts)


def test_an_outline_names_steps_and_questions(client):
    taught = lesson(QUICK)
    found = client.get(f"/learn/{QUICK}.json").json()
    assert found["steps"] == [step.title for step in taught.steps]
    assert found["questions"] == [quiz.name for quiz in taught.quizzes]
    assert len(client.get("/learn").text.split("data-lesson=")) == len(LESSONS) + 1


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_page_says_its_language_and_links_to_every_other(client, code):
    page = client.get(f"/learn?lang={code}").text
    assert f'<html lang="{LANGUAGES[code].tag}">' in page
    links = re.findall(r'<a class="language" href="\?lang=(\w+)"[^>]*>([^<]+)</a>', page)
    assert links == [(other, LANGUAGES[other].own_name) for other in LANGUAGES if other != code]


def test_in_chinese(client):
    with language("zh"):
        title = lesson(QUICK).title
    for asked in ({"params": {"lang": "zh"}}, {"headers": {"Accept-Language": "zh-CN,en;q=.5"}}):
        page = client.get(f"/learn/{QUICK}", **asked)
        assert title in page.text
        assert 'lang="zh-Hans"' in page.text
        assert page.headers["vary"] == "Accept-Language"
        assert client.get(f"/learn/{QUICK}.json", **asked).json()["title"] == title
    assert title not in client.get(f"/learn/{QUICK}").text
    # A language that was chosen stays so on the way to other lessons.
    chosen = client.get(f"/learn/{QUICK}?lang=zh").text
    assert '/learn?lang=zh"' in chosen
    assert 'rel="next" href="/learn/masks?lang=zh"' in chosen


def test_the_ends_of_the_course(client):
    first, last = (client.get(f"/learn/{name}").text for name in (LESSONS[0], LESSONS[-1]))
    assert ['rel="prev"' in first, 'rel="next"' in first] == [False, True]
    assert ['rel="prev"' in last, 'rel="next"' in last] == [True, False]


@pytest.mark.parametrize("path", ["/learn/none", "/learn/none.json"])
def test_a_lesson_that_there_is_not(client, path):
    refused = client.get(path)
    assert refused.status_code == 404
    assert "masks" in refused.json()["detail"]


def test_it_needs_no_token(asking, videos_path, tmp_path):
    file = tmp_path / "token"
    file.write_text("0123456789abcdef\n")
    with asking(videos_path, token_file=file) as client:
        for path in ("/learn", "/learn/masks", "/learn/masks.json", "/docs", "/openapi.json"):
            assert client.get(path).status_code == 200


def test_a_lesson_is_computed_once_for_each_language(asking, videos_path, monkeypatch):
    computed = []

    def counted(name):
        computed.append(name)
        return lesson(name)

    monkeypatch.setattr(lesson_pages, "lesson", counted)
    with asking(videos_path) as client:
        for _ in range(3):
            client.get("/learn/masks")
            client.get("/learn/masks?lang=zh")
    assert computed == ["masks", "masks"]


def test_one_that_failed_is_tried_again(asking, videos_path, monkeypatch):
    def broken(name):
        raise ValueError("once")

    with asking(videos_path) as client:
        with monkeypatch.context() as patched:
            patched.setattr(lesson_pages, "lesson", broken)
            assert client.get("/learn/masks").status_code == 500
        assert client.get("/learn/masks").status_code == 200


def test_one_that_takes_too_long_is_there_when_asked_again(asking, videos_path, monkeypatch):
    go_on = threading.Event()

    def slow(name):
        go_on.wait(300)
        return lesson(name)

    monkeypatch.setattr(lesson_pages, "lesson", slow)
    with asking(videos_path, seconds=0.2) as client:
        late = client.get("/learn/masks")
        assert late.status_code == 503
        assert late.headers["retry-after"]
        go_on.set()
        end = time.monotonic() + 300
        while client.get("/learn/masks").status_code != 200:
            assert time.monotonic() < end

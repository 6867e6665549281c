"""The page that recommends, as a visitor uses it: by keyboard, by mouse, by its address."""

import json
import re
import shutil
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import pytest

LIKED = "/recommend?likes=m001&likes=m003&rate=m002%3D5"


@pytest.fixture(scope="module")
def films(chromium, serving, movies_path, tmp_path_factory):
    """A server that may record, of films that are rated."""
    path = shutil.copytree(movies_path, tmp_path_factory.mktemp("films") / "movies")
    with serving(path) as server:
        yield server


@pytest.fixture
def at(visit, films):
    """The page at an address, once it stands."""

    @contextmanager
    def opened(path="/recommend", server=None, **options):
        with visit(server or films, path, **options) as page:
            page.wait_for_selector("body[data-ready]")
            yield page

    return opened


def asked(page):
    return parse_qs(page.evaluate("location.search")[1:])


def ids(page, of="#hits"):
    entries = page.locator(f"{of} > li").all()
    return [entry.get_attribute("data-item") for entry in entries]


def rescored(page):
    """Once the newest answer is shown."""
    page.locator('#hits[aria-busy="true"]').wait_for(state="detached")


def get(films, path):
    return json.loads(films.get(path)[2])


def test_the_keyboard_alone_picks_rates_and_takes_back(at):
    with at() as page:
        page.keyboard.press("/")
        # At once: the answer to a beginning may come before the rest is typed, and be replaced.
        page.keyboard.insert_text("toy story")
        page.locator("#box-list [role=option]").first.wait_for()
        page.keyboard.press("ArrowDown")
        box = page.locator("#box")
        assert box.get_attribute("aria-activedescendant") == "box-list-0"
        page.keyboard.press("Enter")
        page.locator("#hits > li").nth(11).wait_for()
        assert asked(page) == {"likes": ["m001"]}
        assert box.get_attribute("aria-expanded") == "false"
        page.keyboard.press("Escape")  # nothing is open: it empties the box
        page.locator("#box").blur()
        page.keyboard.press("ArrowDown")
        first = ids(page)[0]
        assert page.evaluate("document.activeElement.closest('[data-item]').dataset.item") == first
        page.locator("#hits select").first.select_option("4")
        page.locator(f'#chosen [data-item="{first}"]').wait_for()
        assert asked(page)["rate"] == [f"{first}=4"]
        rescored(page)
        assert first not in ids(page)
        assert page.locator("#hits .mark-new.came").count() > 0
        # The keyboard stays in the list, at the place of what went.
        assert page.evaluate("!!document.activeElement.closest('#hits')")
        page.keyboard.press("l")
        rescored(page)
        assert len(asked(page)["likes"]) == 2
        page.keyboard.press("d")
        rescored(page)
        assert any(one.endswith("=1") for one in asked(page)["rate"])


def test_reasons_add_up_in_the_page(at):
    with at("/recommend?user=u001&damping=0.3&diversity=0.3") as page:
        hit = page.locator("#hits > li").nth(1)
        hit.locator(".title").click()
        sums = hit.locator(".sum")
        sums.wait_for()
        assert "add up to" in sums.inner_text()
        values = hit.locator(".every .value").all_text_contents()
        total = sum(float(value.replace("−", "-")) for value in values)
        shown = float(sums.get_attribute("data-score"))
        assert abs(total - shown) <= 0.0005 * len(values)
        assert abs(float(hit.locator(".score > .value").inner_text()) - shown) <= 0.0005
        names = hit.locator(".every .what").all_text_contents()
        assert "damping" in names
        assert "diversity" in names
        hit.locator(".title").click()
        assert hit.locator(".title").get_attribute("aria-expanded") == "false"


def thousandths(text):
    return round(1000 * float(text.replace("−", "-").replace("+", "").lstrip("= ")))


@pytest.mark.parametrize("size", [(390, 900), (1280, 900)])
def test_below_each_title_the_reasons_and_the_others_are_the_score(at, films, size):
    viewport = {"width": size[0], "height": size[1]}
    asked = "recommend?user=u021&damping=0.2&diversity=0.2"
    with at(f"/{asked}", viewport=viewport) as page:
        hits = get(films, f"/api/v1/{asked}&k=12&explain=true&because=3")["hits"]
        for place, hit in enumerate(hits):
            why = page.locator("#hits > li").nth(place).locator(".why")
            values = why.locator(".reason .value").all_text_contents()
            assert len(values) == len(hit["because"]) == 6  # three, others, damping, diversity
            score = thousandths(why.locator(".rest").inner_text().split("=")[1])
            assert sum(map(thousandths, values)) == score == round(1000 * hit["score"])
            names = why.locator(".what").all_text_contents()
            assert sum("others together" in name for name in names) == 1
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0


def test_what_would_have_to_be_gone_is_said_and_left_out(at, films):
    with at("/recommend?user=u021") as page:
        page.locator("#hits .title").nth(11).click()
        gone = page.locator("#hits .gone")
        gone.wait_for()
        items = json.loads(gone.get_attribute("data-smallest"))
        (*_, last) = get(films, "/api/v1/recommend?user=u021&k=12&explain=smallest")["hits"]
        assert items == last["smallest"]["items"]
        assert items
        gone.locator("button").click()
        page.locator("#change-counts", has_text="went").wait_for()
        rescored(page)
        assert sorted(asked(page)["without"]) == sorted(items)
        assert str(last["id"]) not in ids(page)


def test_reasons_are_in_the_language_of_the_page(at):
    with at("/recommend?user=u021", locale="zh-CN") as page:
        for place in (0, 1):
            page.locator("#hits .title").nth(place).click()
            page.locator("#hits .all .sum").nth(place).wait_for()
        told = page.locator("#hits .words li, #hits .reason .what, #hits .gone").all_text_contents()
        assert any("的人也喜欢" in text for text in told)
        english = [text for text in told if re.search(r"people|liked|such as|others|because", text)]
        assert english == []


def test_a_reason_is_clicked_away_and_brought_back(at, films):
    with at("/recommend?user=u001") as page:
        before = ids(page)
        reason = page.locator("#hits .reason").first
        gone = reason.get_attribute("data-reason")
        reason.locator("button").click()
        page.locator("#change-counts", has_text="went").wait_for()
        rescored(page)
        assert asked(page)["without"] == [gone]
        wanted = get(films, f"/api/v1/recommend?user=u001&without={gone}&k=12")["hits"]
        assert ids(page) == [str(hit["id"]) for hit in wanted]
        counts = [int(word) for word in page.locator("#change-counts").inner_text().split()[::2]]
        came = set(ids(page)) - set(before)
        assert counts[2] == len(came)
        assert counts[3] == len(set(before) - set(ids(page))) == page.locator("#gone li").count()
        rose = page.locator("#hits .mark-new.rose").count()
        assert counts[0] == rose
        assert page.locator(f'#hits [data-reason="{gone}"]').count() == 0
        # The keyboard is on it, so that Enter brings it back.
        assert page.evaluate("document.activeElement.dataset.without") == gone
        page.keyboard.press("Enter")
        page.locator("#changed").wait_for(state="hidden")
        rescored(page)
        assert ids(page) == before


def test_a_link_says_everything(at, films):
    path = f"{LIKED}&exclude=m010&without=m001&damping=0.5&diversity=0.25&recent=7&user=u002"
    with at(path) as page:
        assert page.locator("#chosen > li").count() == 4
        assert page.locator('#chosen [data-item="m001"]').inner_text().startswith("Toy Story")
        assert page.locator("#left-out").inner_text().startswith("Toy Story")
        assert page.locator("#damping-value").inner_text() == "0.50"
        assert "7" in page.locator("#recent-value").inner_text()
        wanted = get(films, f"/api/v1{path}&k=12")["hits"]
        rescored(page)
        assert ids(page) == [str(hit["id"]) for hit in wanted]
        assert asked(page) == parse_qs(urlsplit(path).query)


def test_sliders_change_the_list_at_once_and_are_reset(at):
    with at(LIKED) as page:
        before = ids(page)
        page.locator("#damping").focus()
        for _ in range(12):
            page.keyboard.press("ArrowRight")
        rescored(page)
        assert asked(page)["damping"] == ["0.6"]
        assert ids(page) != before
        page.locator("#recent").focus()
        page.keyboard.press("End")
        said = page.locator("#recent").get_attribute("aria-valuetext")
        assert said == "an interaction counts half as much after 1 later one"
        page.locator("#reset").click()
        rescored(page)
        assert page.url.endswith(LIKED)
        assert ids(page) == before


def test_a_user_is_found_and_shows_a_history(at, films):
    with at() as page:
        page.locator("#user").fill("u002")
        page.locator("#user").press("Enter")
        page.locator("#history > li").first.wait_for()
        wanted = get(films, "/api/v1/users/u002/history?k=20")
        assert ids(page, "#history") == [str(row["id"]) for row in wanted["rows"]]
        assert str(wanted["total"]) in page.locator("#history-count").inner_text()
        rating = wanted["rows"][0]["rating"]
        assert f"rated {rating:g}" in page.locator("#history > li").first.inner_text()
        page.locator("#history .title").first.click()
        assert asked(page)["without"] == [str(wanted["rows"][0]["id"])]
        page.locator("#user-away").click()
        page.locator("#history-part").wait_for(state="hidden")
        assert "user" not in asked(page)


def test_recording_is_for_good_and_only_when_asked(at, films):
    with at("/recommend?user=visitor-of-no-log", expected=["404"]) as page:
        assert "no user" in page.locator("#failed").inner_text()
        assert page.locator("#most-met > li").count() == 24
    films_recorded = get(films, "/api/v1/info")["recorded"]
    with at(f"{LIKED}&user=u003") as page:
        assert get(films, "/api/v1/info")["recorded"] == films_recorded
        page.locator("#record").click()
        dialog = page.locator("dialog[open]")
        assert dialog.locator(".to-record li").count() == 3
        dialog.locator("button", has_text="Cancel").click()
        assert get(films, "/api/v1/info")["recorded"] == films_recorded
        page.locator("#record").click()
        page.locator("dialog[open] button[type=submit]").click()
        page.locator("#chosen-part").wait_for(state="hidden")
        assert get(films, "/api/v1/info")["recorded"] == films_recorded + 3
        assert asked(page) == {"user": ["u003"]}
        page.locator('#history [data-item="m001"]').wait_for()
        assert {"m001", "m002", "m003"} <= set(ids(page, "#history"))


def test_an_answer_that_was_lost_is_not_recorded_twice(at, films):
    before = get(films, "/api/v1/info")["recorded"]
    with at("/recommend?likes=m005&user=u004", expected=["Failed to load"]) as page:
        tries = []

        def lose_the_first(route):
            tries.append(route.request.headers["idempotency-key"])
            if len(tries) == 1:
                route.fetch()
                route.abort()
            else:
                route.continue_()

        page.route("**/api/v1/record", lose_the_first)
        page.locator("#record").click()
        page.locator("dialog[open] button[type=submit]").click()
        page.locator("dialog[open] [role=alert]").wait_for()
        page.locator("dialog[open] button[type=submit]").click()
        page.locator("#chosen-part").wait_for(state="hidden")
    assert tries[0] == tries[1]
    assert get(films, "/api/v1/info")["recorded"] == before + 1


def test_where_nothing_is_rated_and_nothing_may_be_recorded(at, site):
    with at("/recommend?user=w001", server=site) as page:
        page.locator("#hits .title").first.focus()
        assert "no ratings here" in page.locator("#scale").inner_text()
        first = ids(page)[0]
        page.keyboard.press("-")
        rescored(page)
        assert asked(page)["exclude"] == [first]
        assert first not in ids(page)
        page.locator("#hits .acts button").first.click()
        rescored(page)
        assert not page.locator("#record").is_visible()


def test_without_interactions_texts_recommend_and_the_page_says_so(at, serving, tmp_path):
    from qkvsearch.engine import build

    titles = ["&lt;img src=x onerror=alert(1)&gt; bread", "Bread \u202eoven\u202c", "Space ships"]
    items = tmp_path / "items.csv"
    items.write_text("id,title\n" + "".join(f"{n},{t}\n" for n, t in enumerate(titles, 1)), "utf-8")
    build(tmp_path / "w", items=items, encoder="corpus").close()
    with serving(tmp_path / "w", "--read-only") as server, at(server=server) as page:
        assert not page.locator("#user-part").is_visible()
        page.locator("#most-met .title").first.click()
        page.locator("#hits > li").first.wait_for()
        assert page.locator("#by-texts").is_visible()
        assert "By text alone" in page.locator("#notes").inner_text()
        assert page.locator("main img").count() == 0
        assert "onerror" in page.locator("#chosen").inner_text()
        assert "\u202e" not in page.locator("main").inner_text()


def test_an_answer_that_nobody_asks_for_any_more_is_not_shown(at, until, rested):
    with at() as page:
        held = []
        page.route("**/api/v1/recommend", lambda route: held.append(route))
        page.locator("#most-met .title").first.click()
        page.locator("#chosen .sign", has_text="×").click()
        assert asked(page) == {}
        until(page, lambda: held)
        with page.expect_response("**/api/v1/recommend"):
            held[0].continue_()
        rested(page)
        assert page.locator("#most-met > li").first.is_visible()
        assert not page.locator("#answer").is_visible()
        rescored(page)


def test_more_than_the_server_gives_is_as_much_as_it_gives(at):
    with at(f"{LIKED}&k=1000") as page:
        rescored(page)
        assert page.locator("#hits > li").count() == 100
        assert not page.locator("#failed").is_visible()


def test_what_was_recorded_is_not_offered_again_where_the_history_fails(at, films):
    expected = ["Failed to load"]
    with at("/recommend?likes=m006&user=u005", expected=expected) as page:
        page.route("**/api/v1/users/u005/history?*", lambda route: route.abort())
        page.locator("#record").click()
        page.locator("dialog[open] button[type=submit]").click()
        page.locator("#failed").wait_for()
        rescored(page)
        assert page.locator("#failed").is_visible()
        assert not page.locator("#chosen-part").is_visible()
        assert asked(page) == {"user": ["u005"]}


def test_titles_without_end_are_cut_where_they_are_read_out(at, serving, hostile_path):
    with serving(hostile_path, "--read-only") as server, at("/recommend", server=server) as page:
        title = page.locator("#most-met .title", has_text="rain xxx")
        title.click()
        page.locator("#hits > li").first.wait_for()
        rescored(page)
        longest = """() => Math.max(...[...document.querySelectorAll("*")].flatMap(
          one => [...one.attributes].map(attribute => attribute.value.length)))"""
        assert page.evaluate(longest) <= 2000
        assert len(page.inner_text("#said")) < 300


def test_what_is_not_in_the_catalog_is_said_and_passed_over(at):
    with at("/recommend?likes=m001&likes=gone-away", expected=["404"]) as page:
        assert "not in the catalog" in page.locator("#chosen").inner_text()
        assert page.locator("#hits > li").count() == 12


def test_answers_do_not_overtake_each_other(at, until, rested):
    with at() as page:
        held = []

        def hold(route):
            if not held and "q=t&" in route.request.url:
                held.append(route)
            else:
                asked_for.append(route.request.url)
                route.continue_()

        asked_for = []
        page.route("**/api/v1/search?*", hold)
        page.locator("#box").press_sequentially("toy")
        until(page, lambda: held)
        rested(page)
        assert (len(held), asked_for) == (1, [])  # the others wait
        held[0].continue_()
        page.locator("#box-list [role=option]", has_text="Toy").first.wait_for()
        assert ["q=toy&" in url for url in asked_for] == [True]


def test_a_page_that_cannot_load_does_not_go_on_loading(films, browsing, expect):
    with browsing() as context:
        page = context.new_page()
        refusal = {"status": 403, "content_type": "application/problem+json", "body": "{}"}
        page.route("**/api/v1/info*", lambda route: route.fulfill(**refusal))
        page.goto(films.url + "/recommend")
        expect(page.locator("#failed")).to_be_visible()
        expect(page.locator("#start")).to_be_hidden()

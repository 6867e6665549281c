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
    entries = page.locator(f"{of} li[data-item]").all()
    return [entry.get_attribute("data-item") for entry in entries]


def grouped(hits):
    """The ids of an answer's hits in the order of the page: by what they rest on, the group of the
    best hit first.
    """
    groups = {}
    for hit in hits:
        groups.setdefault(hit.get("rests_on"), []).append(str(hit["id"]))
    return [id_ for group in groups.values() for id_ in group]


def why(page, place=0):
    """Open the reasons of a card, which is returned."""
    card = page.locator("#hits li[data-item]").nth(place)
    card.locator(".opens").click()
    card.locator(".total").first.wait_for()
    return card


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
        page.locator("#hits li[data-item]").nth(11).wait_for()
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


def thousandths(text):
    return round(1000 * float(text.replace("−", "-").replace("+", "").lstrip("= ")))


def of_list(reasons):
    """The numbers of a list of reasons as they are shown, and the score at its end."""
    *values, total = reasons.locator(".value").all_text_contents()
    assert total.startswith("= ")
    return list(map(thousandths, values)), thousandths(total)


@pytest.mark.parametrize("size", [(390, 900), (1280, 900)])
def test_reasons_and_the_others_are_the_score(at, films, size):
    viewport = {"width": size[0], "height": size[1]}
    asked = "recommend?user=u021&damping=0.2&diversity=0.2"
    with at(f"/{asked}", viewport=viewport) as page:
        hits = get(films, f"/api/v1/{asked}&k=12&explain=true&because=5")["hits"]
        by_id = {str(hit["id"]): hit for hit in hits}
        assert ids(page) == grouped(hits)
        for place, id_ in enumerate(ids(page)):
            first = why(page, place).locator(".reasons").first
            values, score = of_list(first)
            assert len(values) == len(by_id[id_]["because"]) == 8  # others, damping, diversity
            assert sum(values) == score == round(1000 * by_id[id_]["score"])
            names = first.locator(".what").all_text_contents()
            assert sum("other items" in name for name in names) == 1
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0


@pytest.mark.parametrize("width", [320, 360, 390, 430])
def test_what_opens_the_reasons_stands_beside_the_first_and_not_alone(at, width):
    with at("/recommend?user=u021", viewport={"width": width, "height": 800}) as page:
        page.locator("#hits li[data-item]").first.wait_for()
        alone = page.evaluate("""() => [...document.querySelectorAll(".because")].filter((one) => {
          const lines = [...one.querySelector(".reason-line").getClientRects()];
          const why = one.querySelector(".opens").getBoundingClientRect();
          return lines.every((line) => why.top >= line.bottom || why.bottom <= line.top);
        }).length""")
        assert alone == 0


def test_every_part_is_opened_and_adds_up_as_well(at):
    with at("/recommend?user=u001&damping=0.3&diversity=0.3") as page:
        card = why(page, 1)
        card.locator("summary").click()
        every = card.locator(".every")
        values, score = of_list(every)
        assert len(values) > 10
        assert sum(values) == score
        total = every.locator(".total")
        exact = [float(total.get_attribute(name)) for name in ("data-sum", "data-score")]
        assert exact[0] == pytest.approx(exact[1], abs=1e-4)
        names = every.locator(".what").all_text_contents()
        assert {"fewer popular items", "diversity", "score"} <= set(names)
        card.locator(".opens").click()
        assert card.locator(".opens").get_attribute("aria-expanded") == "false"
        assert not every.is_visible()


def test_hits_stand_below_the_choice_that_they_rest_on(at, films):
    path = "/recommend?likes=m001&likes=m010&likes=m042"
    with at(path) as page:
        hits = get(films, f"/api/v1{path}&k=12&explain=true")["hits"]
        assert len({hit.get("rests_on") for hit in hits}) > 1
        titles = {part["id"]: part["title"] for hit in hits for part in hit["because"]}
        headings = page.locator("#hits .rests-on").all_text_contents()
        wanted = list(dict.fromkeys(hit.get("rests_on") for hit in hits))
        several = "Because of several of your choices"
        assert headings == [
            several if id_ is None else f"Because you chose {titles[id_]}" for id_ in wanted
        ]
        assert ids(page) == grouped(hits)
        for hit in hits:
            helpful = {p["id"]: p["contribution"] for p in hit["because"] if p["contribution"] > 0}
            largest = max(helpful, key=helpful.get)
            is_main = helpful[largest] > sum(helpful.values()) / 2
            assert hit.get("rests_on") == (largest if is_main else None)


def test_a_first_visit_has_popular_items_and_three_choices_to_try(at):
    with at() as page:
        assert page.locator("#start-heading").inner_text() == "Popular"
        assert page.locator("#most-met > li").count() == 12
        assert "I like this" in page.locator("#most-met .act").first.inner_text()
        examples = page.locator("#examples a")
        assert examples.count() == 3
        examples.first.click()
        page.locator("#hits li[data-item]").first.wait_for()
        assert len(asked(page)["likes"]) == 1
        assert not page.locator("#examples").is_visible()


def test_a_user_who_is_not_there_is_named_beside_the_field(at):
    for width in (390, 1280):
        viewport = {"width": width, "height": 800}
        with at(viewport=viewport, expected=["404"]) as page:
            page.locator("#user").fill("nobody-knows")
            page.locator("#user").press("Enter")
            failed = page.locator("#user-failed")
            failed.wait_for()
            assert failed.inner_text() == "There is no user nobody-knows here. Check the id."
            box = failed.bounding_box()
            assert 0 <= box["y"] <= 800 - box["height"]
            assert page.locator("#user").input_value() == "nobody-knows"
            page.locator("#user").fill("u001")
            page.locator("#user").press("Enter")
            page.locator("#hits li[data-item]").first.wait_for()
            assert not failed.is_visible()


def test_what_would_have_to_be_gone_is_said_and_left_out(at, films):
    with at("/recommend?user=u021") as page:
        (*_, last) = get(films, "/api/v1/recommend?user=u021&k=12&explain=smallest")["hits"]
        why(page, ids(page).index(str(last["id"])))
        gone = page.locator("#hits .gone")
        gone.wait_for()
        items = json.loads(gone.get_attribute("data-smallest"))
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
            why(page, place).locator(".all > p").wait_for()
        said = "#hits :is(.reason .what, .reason-line, .rests-on, .gone)"
        told = page.locator(said).all_text_contents()
        assert any("的人也喜欢" in text for text in told)
        english = [text for text in told if re.search(r"people|liked|such as|others|because", text)]
        assert english == []


def test_a_reason_is_clicked_away_and_brought_back(at, films):
    with at("/recommend?user=u001") as page:
        before = ids(page)
        reason = why(page).locator(".reason").first
        gone = reason.get_attribute("data-reason")
        reason.locator("button").click()
        page.locator("#change-counts", has_text="went").wait_for()
        rescored(page)
        assert asked(page)["without"] == [gone]
        path = f"/api/v1/recommend?user=u001&without={gone}&k=12&explain=true"
        assert ids(page) == grouped(get(films, path)["hits"])
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
        wanted = get(films, f"/api/v1{path}&k=12&explain=true")["hits"]
        rescored(page)
        assert ids(page) == grouped(wanted)
        assert asked(page) == parse_qs(urlsplit(path).query)


def test_sliders_change_the_list_at_once_and_are_reset(at):
    with at(LIKED) as page:
        before = ids(page)
        page.locator("#options summary").click()
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
        assert "visitor-of-no-log" in page.locator("#user-failed").inner_text()
        assert page.locator("#most-met > li").count() == 12
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
        assert "not rated anything here" in page.locator("#scale").text_content()
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
        page.locator("#most-met .act").first.click()
        page.locator("#hits li[data-item]").first.wait_for()
        assert page.locator("#by-texts").is_visible()
        assert "By text alone" in page.locator("#notes").inner_text()
        assert page.locator("main img").count() == 0
        assert "onerror" in page.locator("#chosen").inner_text()
        assert "\u202e" not in page.locator("main").inner_text()


def test_an_answer_that_nobody_asks_for_any_more_is_not_shown(at, until, rested):
    with at() as page:
        held = []
        page.route("**/api/v1/recommend", lambda route: held.append(route))
        page.locator("#most-met .act").first.click()
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
        assert page.locator("#hits li[data-item]").count() == 100
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
    path = "/recommend?likes=x2&likes=x4"
    with serving(hostile_path, "--read-only") as server, at(path, server=server) as page:
        page.locator("#hits li[data-item]").first.wait_for()
        assert "rain xxx" in page.locator("#chosen").inner_text()
        longest = """() => Math.max(...[...document.querySelectorAll("*")].flatMap(
          one => [...one.attributes].map(attribute => attribute.value.length)))"""
        assert page.evaluate(longest) <= 2000
        page.locator('#chosen [data-item="x2"] .sign').click()
        rescored(page)
        assert "rain xxx" in page.inner_text("#said")
        assert len(page.inner_text("#said")) < 300


def test_what_is_not_in_the_catalog_is_said_and_passed_over(at):
    with at("/recommend?likes=m001&likes=gone-away", expected=["404"]) as page:
        assert "not in the catalog" in page.locator("#chosen").inner_text()
        assert page.locator("#hits li[data-item]").count() == 12


def test_why_nothing_is_recommended_is_said_in_the_language_of_the_page(at):
    with at("/recommend?rate=m001%3D1&lang=zh") as page:
        page.locator("#notes p").wait_for()
        assert "还没有喜欢的条目" in page.locator("#notes").inner_text()
        assert page.locator("#notes [lang=en]").count() == 0


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

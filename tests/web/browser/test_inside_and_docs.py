"""What is inside, and the API's own page, in a browser."""

import json


def test_facts_heads_columns_and_builds_are_shown(visit, site, videos):
    info = videos.info()
    with visit(site, "/inside") as page:
        page.locator(".facts").wait_for()
        assert f"{info['items']:,}" in page.locator(".facts").inner_text()
        shown = page.locator(".bars").first.locator("li").all_inner_texts()
        assert [line.split("\n")[0] for line in shown] == list(info["head_weights"])
        names = page.locator("table").first.locator("tbody th").all_inner_texts()
        assert names == [column["name"] for column in info["columns"]]
        assert "evaluate recommend" in page.locator("#page").inner_text()
        shares = page.locator(
            "section:has(h2:text-is('Heads of a recommendation and their shares'))"
        )
        bars = [line.split("\n")[0] for line in shares.locator("li").all_inner_texts()]
        assert bars == list(info["recommend_heads"]["shares"])
        assert str(info["items"]) in page.locator("#said").inner_text()


def test_every_example_of_the_api_runs(visit, site):
    with visit(site, "/docs") as page:
        page.locator(".operation").first.wait_for()
        names = page.locator(".operation").evaluate_all("all => all.map(one => one.id)")
        described = json.loads(site.get("/openapi.json")[2])
        assert len(names) == sum(map(len, described["paths"].values()))
        for name in names:
            box = page.locator(f"#{name}")
            if "changes" in box.get_attribute("class").split():
                continue
            box.locator("> summary").click()
            box.locator("form:valid").wait_for()  # what it demands has been filled in
            box.locator("form button").click()
            box.locator(".told").wait_for()
            assert box.locator(".told").inner_text().startswith("200"), name
            assert "curl" in box.locator(".result pre").first.inner_text()


def test_a_question_of_the_api_is_in_the_address(visit, site, videos):
    with visit(site, "/docs?ask=search&q=sourdough&k=2&explain=true") as page:
        page.locator(".told").wait_for()
        assert page.locator("#search-q").input_value() == "sourdough"
        assert page.locator("#search-k").input_value() == "2"
        assert page.locator("#search-explain").is_checked()
        asked = page.locator("#search .result pre").first.inner_text()
        assert "q=sourdough" in asked
        assert "k=2" in asked
        # What is asked next, by keyboard, is in it as well; hostile text stays text.
        page.locator("#search-q").fill("<img src=x onerror=alert(1)>'")
        page.keyboard.press("Enter")
        page.wait_for_url("**q=%3Cimg**")
        page.locator(".told").wait_for()
        assert page.locator(".result img").count() == 0


def test_a_refusal_is_shown(visit, site):
    expected = ("400",)
    with visit(site, "/docs?ask=search&q=bread&where=nonsense", expected=expected) as page:
        page.locator(".told.bad").wait_for()
        assert "nonsense" in page.locator("#search .result").inner_text()


def test_what_is_sent_must_be_json(visit, site):
    with visit(site, "/docs") as page:
        page.locator("#search_batch > summary").click()
        page.locator("#search_batch-body").fill("{")
        page.locator("#search_batch form button").click()
        assert "not JSON" in page.locator("#search_batch [role=alert]").inner_text()


def test_arrows_go_from_question_to_question(visit, site):
    with visit(site, "/docs") as page:
        page.locator(".operation").first.wait_for()
        for _ in range(2):
            page.keyboard.press("ArrowDown")
        here = "document.activeElement.parentElement.id"
        assert page.evaluate(here) == "search_batch"
        page.keyboard.press("Enter")
        assert page.locator("#search_batch").get_attribute("open") is not None


def test_the_token_is_asked_for(visit, serving, videos_path, tmp_path, chromium):
    file = tmp_path / "token"
    file.write_text("0123456789abcdef\n")
    with (
        serving(videos_path, "--token-file", str(file)) as server,
        visit(server, "/docs?ask=health", expected=("401",)) as page,
    ):
        page.goto(f"{server.url}/docs?ask=info")
        page.locator("#token").fill("0123456789abcdef")
        page.keyboard.press("Enter")
        page.locator(".told").wait_for()
        assert "Bearer TOKEN" in page.locator("#info .result pre").first.inner_text()
        assert "0123456789abcdef" not in page.locator("#info .result").inner_text()
        page.goto(f"{server.url}/inside")
        page.locator(".facts").wait_for()

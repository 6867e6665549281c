"""What is inside, and Swagger UI, in a browser."""

import json

# Pressed rather than clicked: a click waits for two equal frames, and once, on a busy machine,
# Swagger UI's page drew none in five minutes.
EXECUTE = ".opblock-body .execute"


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


def test_every_route_is_listed_and_one_is_tried_out(visit, site):
    with visit(site, "/docs#/search/search") as page:
        page.locator(EXECUTE).wait_for()
        described = json.loads(site.get("/openapi.json")[2])
        assert page.locator(".opblock").count() == sum(map(len, described["paths"].values()))
        page.locator("[data-param-name=q] input").fill("sourdough")
        page.locator(EXECUTE).press("Enter")
        page.locator(".live-responses-table .response-col_status").first.wait_for()
        assert "200" in page.locator(".live-responses-table tbody").inner_text()
        assert "q=sourdough" in page.locator(".curl-command").inner_text()


def test_the_token_of_the_tab_is_used(visit, serving, videos_path, tmp_path):
    file = tmp_path / "token"
    file.write_text("0123456789abcdef\n")
    with (
        serving(videos_path, "--token-file", str(file)) as server,
        visit(server, "/inside", expected=("401",)) as page,
    ):
        page.locator("#token").fill("0123456789abcdef")
        page.keyboard.press("Enter")
        page.locator(".facts").wait_for()
        page.goto(f"{server.url}/docs#/state/info")
        page.locator(EXECUTE).press("Enter")
        page.locator(".live-responses-table .response-col_status").first.wait_for()
        assert "200" in page.locator(".live-responses-table tbody").inner_text()

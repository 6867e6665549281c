"""Headless Chromium before a running server. Without Playwright or Chromium these tests skip."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

# Seconds: a machine may have other work.
WITHIN = 120


@pytest.fixture(scope="session")
def site(chromium, serving, videos_path):
    """A server of the videos."""
    with serving(videos_path, "--read-only") as server:
        yield server


@pytest.fixture(scope="session")
def visit(chromium):
    """Opens an address, or no page yet for None; afterwards nothing may have been asked of another
    origin, nor complained of, but for `expected` texts of the console.
    """

    @contextmanager
    def visiting(server, path="/", expected=(), **options):
        context = chromium.new_context(reduced_motion="reduce", **options)
        context.set_default_timeout(1000 * WITHIN)
        page = context.new_page()
        requests, complaints = [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        try:
            if path is not None:
                page.goto(server.url + path)
            yield page
            assert [text for text in complaints if not any(e in text for e in expected)] == []
            own = (server.url, f"blob:{server.url}", "data:")
            assert [url for url in requests if not url.startswith(own)] == []
        finally:
            context.close()

    return visiting

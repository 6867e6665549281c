"""Headless Chromium before a running server. Without Playwright or Chromium these tests skip."""

from contextlib import contextmanager
from time import monotonic

import pytest

# After the page's own timers, a quarter of a second at most, and what it draws in its next frames.
RESTED = """() => new Promise(done => setTimeout(
  () => requestAnimationFrame(() => requestAnimationFrame(done)), 400))"""


@pytest.fixture(scope="session")
def site(chromium, serving, videos_path):
    """A server of the videos."""
    with serving(videos_path, "--read-only") as server:
        yield server


@pytest.fixture(scope="session")
def visit(browsing):
    """Opens an address, or no page yet for None; afterwards nothing may have been asked of another
    origin, nor complained of, but for `expected` texts of the console.
    """

    @contextmanager
    def visiting(server, path="/", expected=(), reasons=True, **options):
        with browsing(reduced_motion="reduce", **options) as context:
            if reasons:
                context.add_init_script("localStorage.setItem('qkvsearch-reasons', 'yes')")
            page = context.new_page()
            requests, complaints = [], []
            page.on("request", lambda request: requests.append(request.url))
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            if path is not None:
                page.goto(server.url + path)
            yield page
            assert [text for text in complaints if not any(e in text for e in expected)] == []
            own = (server.url, f"blob:{server.url}", "data:")
            assert [url for url in requests if not url.startswith(own)] == []

    return visiting


@pytest.fixture(scope="session")
def until():
    """Waits until something holds that no page knows, such as that a request is held back."""

    def waiting(page, holds):
        end = monotonic() + 300
        while not holds():
            assert monotonic() < end
            page.wait_for_timeout(20)  # meanwhile requests are told of

    return waiting


@pytest.fixture(scope="session")
def rested():
    """Waits, in the page's own time, until it has done what it does a little later."""
    return lambda page: page.evaluate(RESTED)

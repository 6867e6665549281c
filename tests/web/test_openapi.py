"""Every route answers as OpenAPI describes it, whatever it is asked (Schemathesis)."""

import shutil
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

from qkvsearch.web.app import make_app

schemathesis = pytest.importorskip("schemathesis", reason="needs qkvsearch[test]")
checks = pytest.importorskip("schemathesis.specs.openapi.checks")

ASKED = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}
# What does not fit may be refused for its length as well.
CONFIG = {
    "checks": {"negative_data_rejection": {"expected-statuses": [400, 404, 405, 413, 414, 422]}}
}
# A value of the right type may still be none that is there, or no condition that can be read. An id
# may have slashes, so that an address may be that of two routes, and allows the methods of both.
LEFT_OUT = [checks.positive_data_acceptance, checks.allow_header_conformance]


@pytest.fixture(scope="module")
def described(request, shop_path, tmp_path_factory):
    """The API of a workspace with items and users, all that may change it included."""
    path = shutil.copytree(shop_path, tmp_path_factory.mktemp("openapi") / "ws")
    app = make_app(request.getfixturevalue("settings")(path))
    config = schemathesis.Config.from_dict(CONFIG)
    return schemathesis.openapi.from_asgi("/openapi.json", asked_by_address(app), config=config)


def asked_by_address(app):
    """Schemathesis asks for a name of its own, and without a token a server answers to its own."""

    async def ask(scope, receive, send):
        if scope["type"] == "http":
            others = [(name, value) for name, value in scope["headers"] if name != b"host"]
            scope = {**scope, "headers": [(b"host", b"127.0.0.1"), *others]}
        await app(scope, receive, send)

    return ask


schema = schemathesis.pytest.from_fixture("described")


@pytest.mark.slow
@schema.parametrize()
@settings(max_examples=200, **ASKED)
def test_thousands_of_answers_are_as_described(case):
    case.call_and_validate(excluded_checks=LEFT_OUT)


def test_every_route_says_what_it_does_and_has_a_name_of_its_own(described):
    routes = [
        route for methods in described.raw_schema["paths"].values() for route in methods.values()
    ]
    assert all(route["summary"] and route["description"] for route in routes)
    assert set(Counter(route["operationId"] for route in routes).values()) == {1}


def test_every_parameter_says_what_it_means(described):
    told = [
        (path, parameter["name"])
        for path, methods in described.raw_schema["paths"].items()
        for route in methods.values()
        for parameter in route.get("parameters", [])
        if not parameter.get("description")
    ]
    assert told == []


def test_what_is_asked_for_comes_first(described):
    paths = described.raw_schema["paths"]
    first = {
        path: paths[f"/api/v1/{path}"]["get"]["parameters"][0]["name"]
        for path in ("search", "similar", "recommend", "attend", "explain/search")
    }
    assert first == {
        "search": "q", "similar": "items", "recommend": "user", "attend": "text",
        "explain/search": "q",
    }  # fmt: skip


def test_what_an_address_allows_is_all_that_it_has(client):
    refused = client.delete("/api/v1/search")
    assert refused.status_code == 405
    assert set(refused.headers["allow"].split(", ")) == {"GET", "HEAD", "OPTIONS", "POST"}

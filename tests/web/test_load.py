"""What one request may cost: small answers, an end in time, and answers for others meanwhile."""

import threading
import time

import pytest

from qkvsearch.rank.ranking import Ranking

LONG = " ".join(f"{word} bread knot river winter jacket" for word in ("guitar",) * 60)[:2000]
# Bytes of 100 explained hits.
MAX_BYTES = 500_000


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("search", {"q": LONG}),
        ("search", {"q": " ".join(f"{a}{b}*" for a in "abcdefghij" for b in "aeiourst")}),
        ("similar", {"items": [f"v{i:03}" for i in range(1, 301)]}),
        ("recommend", {"likes": [f"v{i:03}" for i in range(1, 201)]}),
    ],
)
def test_a_hundred_explained_hits_are_a_small_answer(client, path, asked):
    answer = client.get(f"/api/v1/{path}", params={**asked, "k": 100, "explain": True})
    assert answer.status_code == 200, answer.text
    assert len(answer.content) < MAX_BYTES
    for hit in answer.json()["hits"]:
        listed = hit.get("parts") or hit["because"]
        assert len(listed) <= 21
        total = sum(part.get("value", part.get("contribution")) for part in listed)
        assert total == pytest.approx(hit["score"], abs=1e-3)


def test_a_thread_stops_at_the_deadline_of_its_request(asking, videos_path, monkeypatch, all_heads):
    explained = []

    def slow(ranking, index):
        explained.append(index)
        time.sleep(0.1)
        return ranking.head.parts(int(ranking.positions[index]))

    monkeypatch.setattr(Ranking, "parts", slow)
    with asking(videos_path, seconds=0.5) as client:
        assert (
            client.get("/api/v1/search?q=bread&k=100&explain=true&anyway=true").status_code == 503
        )
        service = client.app.state.service
        while service.answers.n:
            time.sleep(0.01)
            client.get("/api/v1/health")
    assert len(explained) < 10


def test_explanations_leave_threads_for_others(asking, videos_path, monkeypatch):
    goes_on = threading.Event()
    monkeypatch.setattr(Ranking, "explained_records", lambda *_: goes_on.wait(300) and [])
    with asking(videos_path, threads=2, seconds=300) as client:
        long = "/api/v1/search?q=bread&explain=true"
        explaining = [threading.Thread(target=client.get, args=(long,)) for _ in range(4)]
        for thread in explaining:
            thread.start()
        while client.app.state.service.answers.n < 4:
            time.sleep(0.01)
        assert client.get("/api/v1/search?q=bread").status_code == 200
        goes_on.set()
        for thread in explaining:
            thread.join()

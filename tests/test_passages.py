"""Long texts are searched in passages: the right one, its time, its grade; and changes of items."""

import json
import os
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.heads.passages import Passages

PLACES = "Carrow Tessaly Brenholm Ostrava Lindmoor Velden Asker Pontarel".split()
DULL = [
    "Nobody wrote down how long that took, and we walked there in the evening.",
    "It rained for most of that summer, and all the roads were mud for weeks.",
    "There is a photograph of it somewhere, but it is very dark by now.",
    "My grandmother kept the newspaper, so we know the date and the hour.",
]
FACTS = ["lighthouse", "glacier", "orchestra", "ferry"]


def episode(number):
    """Cues of a talk: 20 dull sentences, and then what happened to one thing, four times."""
    place = PLACES[number]
    cues = []
    for fact in FACTS:
        cues += [DULL[(number + n) % 4] for n in range(20)]
        cues.append(f"In {place} the {fact} was sold by a bishop.")
    return cues


def row(number):
    cues = episode(number)
    offsets = np.cumsum([0, *(len(cue) + 1 for cue in cues[:-1])])
    times = [[int(offset), 5 * n, 5 * n + 4] for n, offset in enumerate(offsets)]
    return {
        "id": f"e{number}",
        "title": f"Episode {number}",
        "url": f"https://www.youtube.com/watch?v={number}",
        "text": " ".join(cues),
        "text_times": json.dumps(times),
    }


def second(number, fact):
    return 5 * episode(number).index(f"In {PLACES[number]} the {fact} was sold by a bishop.")


EPISODES = pd.DataFrame([row(number) for number in range(8)])
SHORT = pd.DataFrame(
    [
        {"id": f"s{n}", "title": f"Note {n}", "url": "https://example.org/s", "text": text}
        for n, text in enumerate(["The ferry of Norvik", "A bishop sold wine", "Rain and mud"])
    ]
)
ITEMS = pd.concat([EPISODES, SHORT], ignore_index=True)


@pytest.fixture(scope="module")
def talks(tmp_path_factory):
    return qkv.build(tmp_path_factory.mktemp("talks") / "w", items=ITEMS, encoder="corpus")


@pytest.mark.parametrize(("number", "fact"), [(0, "lighthouse"), (3, "orchestra"), (7, "ferry")])
def test_a_hit_has_the_passage_that_answers_and_its_time(talks, number, fact):
    hit = talks.search(f"who sold the {fact} of {PLACES[number]}")[0]
    at = second(number, fact)
    assert hit.id == f"e{number}"
    assert hit.passage["start"] <= at < hit.passage["end"]
    assert f"In {PLACES[number]} the {fact}" in hit.passage["text"]
    assert len(hit.passage["text"].split()) < 220
    link = f"https://www.youtube.com/watch?v={number}&t={int(hit.passage['start'])}s"
    assert hit.passage["link"] == link


@pytest.mark.parametrize("name", ["Video URL", "Link"])
def test_addresses_in_another_column_than_url_are_linked_to(tmp_path, name):
    items = ITEMS.rename(columns={"url": name})
    items.loc[3, name] = "see the library"
    with qkv.build(tmp_path / "w", items=items, encoder="corpus") as engine:
        linked = engine.search(f"who sold the ferry of {PLACES[7]}")[0].passage
        assert linked["link"].startswith("https://www.youtube.com/watch?v=7&t=")
        assert "link" not in engine.search(f"who sold the orchestra of {PLACES[3]}")[0].passage


def test_passages_are_listed_best_first_and_only_on_request(talks):
    query = "who sold the ferry of Asker"
    hit = talks.search(query, passages=3)[0]
    assert hit.passages[0] == hit.passage
    assert len(hit.passages) == 3
    assert len({passage["start"] for passage in hit.passages}) == 3
    assert "passages" not in talks.search(query)[0].to_dict()


def test_listed_passages_share_no_sentence(talks):
    passages = talks.search("who sold the ferry of Asker", passages=20)[0].passages
    assert len(passages) > 5
    times = sorted((passage["start"], passage["end"]) for passage in passages)
    assert all(end < start for (_, end), (start, _) in pairwise(times))


def test_a_short_item_has_no_passage_and_competes_with_long_ones(talks):
    hit = talks.search("ferry of Norvik")[0]
    assert (hit.id, hit.passage) == ("s0", None)


def test_an_item_is_one_hit_and_its_parts_add_up_to_its_score(talks):
    hits = talks.search("a bishop sold the glacier of Velden", explain=True)
    assert len({hit.id for hit in hits}) == len(hits)
    for n, hit in enumerate(hits):
        assert sum(part.value for part in hits.explain(n, full=True)) == pytest.approx(
            hit.score, abs=1e-4
        )


def test_the_score_of_a_head_is_that_of_the_best_passage(talks):
    head = talks.head("lexical", "orchestra")
    by_item = dict(zip(talks.items, head.scores.tolist(), strict=True))
    # Each episode has the word once, in a passage of about the same length.
    of_episodes = [by_item[f"e{n}"] for n in range(8)]
    assert min(of_episodes) > 0.8 * max(of_episodes) > 0
    assert by_item["s1"] == 0


def test_a_hit_is_graded_by_its_passage(talks):
    together = talks.search("ferry of Asker sold by a bishop")[0]
    assert (together.id, together.match) == ("e6", "strong")
    # Both words are in every episode, and in no passage.
    apart = talks.search("lighthouse orchestra")
    assert all(hit.match != "strong" for hit in apart)


def test_times_are_neither_searched_nor_listed_nor_a_facet(talks):
    info = {column["name"]: column for column in talks.info()["columns"]}
    assert info["text_times"]["role"] == "times"
    assert "text_times" not in talks.items.facet_columns()
    assert "text_times" not in talks.info()["searched_columns"]


def test_a_file_without_the_texts_is_told_how_to_name_them(talks):
    done = talks.sync(ITEMS[["id", "title", "url"]])
    assert not done.changed
    assert any("`texts`" in note for note in done.notes)


def test_a_snippet_is_of_the_passage(talks):
    hit = talks.search("who sold the ferry of Asker", snippet=True)[0]
    assert "In Asker the ferry" in hit.snippet


def arrays(engine):
    folder = engine.workspace.open().base.folder
    return [name for name in os.listdir(folder) if "passage" in name]


def answers(engine):
    queries = [f"who sold the {fact} of {place}" for fact in FACTS for place in PLACES]
    return [
        [(hit.id, hit.score, hit.match, hit.passage) for hit in engine.search(query)]
        for query in [*queries, "rain and mud", "ferry"]
    ]


def test_changed_items_are_searched_as_in_one_build(tmp_path):
    left_out = ITEMS.id.isin(["e1", "e6", "s1"])
    engine = qkv.build(tmp_path / "w", items=ITEMS[~left_out], encoder="corpus")
    engine.add(ITEMS[left_out])
    engine.remove(["e2", "s2"])
    changed = pd.DataFrame([row(4) | {"title": "Ostrich", "url": "https://example.org/4"}])
    engine.add(changed)
    moved = pd.DataFrame([row(5) | {"url": "https://example.org/5#x"}])  # no text is changed
    engine.add(moved)
    by_segments = answers(engine)
    assert engine.search("ostrich")[0].id == "e4"
    link = engine.search("who sold the ferry of Velden")[0].passage["link"]
    assert link.startswith("https://example.org/5#t=")

    engine.compact()
    assert answers(engine) == by_segments
    kept = ITEMS[~ITEMS.id.isin(["e2", "s2", "e4", "e5"])]
    whole = qkv.build(tmp_path / "whole", items=pd.concat([kept, changed, moved]), encoder="corpus")
    for query in ("who sold the ferry of Velden", "bishop"):
        of_both = [each.search(query, heads="lexical") for each in (engine, whole)]
        assert [(hit.id, hit.score) for hit in of_both[0]] == [
            (hit.id, hit.score) for hit in of_both[1]
        ]

    engine.remove([f"e{n}" for n in (0, 1, 3, 4, 5, 6, 7)])
    assert engine.search("ferry")[0].passage is None
    engine.compact()
    assert not arrays(engine)
    assert engine.search("ferry")[0].id == "s0"


def test_a_changed_text_has_no_times_of_another_one(tmp_path):
    engine = qkv.build(tmp_path / "w", items=ITEMS, encoder="corpus")
    same = pd.DataFrame([{"id": "e0", "title": "Ostrich", "text": row(0)["text"]}])
    assert not any("text_times" in note for note in engine.add(same, update=True).notes)
    assert engine.show("e0")["text_times"] == row(0)["text_times"]

    other = pd.DataFrame([{"id": "e0", "text": row(1)["text"]}])
    assert any("text_times" in note for note in engine.add(other, update=True).notes)
    assert engine.show("e0")["text_times"] is None
    hits = engine.search("who sold the ferry of Tessaly", k=2)
    passage = next(hit.passage for hit in hits if hit.id == "e0")
    assert "ferry" in passage["text"]
    assert "start" not in passage

    engine.sync(ITEMS.drop(columns="text_times"))
    assert engine.show("e0")["text"] == row(0)["text"]
    assert engine.show("e1")["text_times"] == row(1)["text_times"]


def test_a_catalog_without_long_texts_has_no_passages(tmp_path):
    engine = qkv.build(tmp_path / "w", items=SHORT, encoder="corpus")
    assert not arrays(engine)
    added = engine.add(EPISODES[:1])
    synced = engine.sync(pd.concat([SHORT, EPISODES[:2]]))
    for done in (added, synced):
        assert any("passages" in note for note in done.notes)


def test_damaged_passages_are_made_again(tmp_path):
    engine = qkv.build(tmp_path / "w", items=ITEMS, encoder="corpus")
    before = answers(engine)
    folder = engine.workspace.open().base.folder
    for name in ("passages.words.npy", "lsa.passage_keys.npy"):
        path = folder / name
        path.write_bytes(path.read_bytes()[:-4] + b"\1\2\3\4")
    qkv.repair(engine.workspace.path)
    assert answers(qkv.open(engine.workspace.path)) == before


def test_some_keys_of_items_and_passages_are_those_of_all(tmp_path):
    engine = qkv.build(tmp_path / "w", items=ITEMS, encoder="corpus")
    keys = engine.models.unit_keys("lsa")
    n_short = engine.models.units.n_short
    assert 0 < n_short < len(engine.models.units)
    for positions in (np.arange(len(keys.vectors))[::-3], np.array([n_short - 1, n_short])):
        np.testing.assert_array_equal(keys.rows(positions), keys.vectors[positions])


def test_a_transformer_reads_every_passage(tmp_path, tiny_bert, assert_adds_up):
    items = ITEMS[ITEMS.id.isin(["e0", "e1", "s0"])]
    engine = qkv.build(tmp_path / "w", items=items, encoder=str(tiny_bert))
    keys = engine.models.unit_keys("transformer").of_passages
    assert len(keys) == len(engine.models.units) - 1 > 10
    # It reads twelve tokens, and a long text counts once however many of its passages are cut.
    assert engine.info()["texts_cut"].startswith("2 of 6 texts")
    hits = engine.search("who sold the ferry of Carrow")
    assert hits[0].id == "e0"
    for n, hit in enumerate(hits):
        assert_adds_up([part.value for part in hits.explain(n, full=True)], hit.score)
    before = [(hit.id, hit.score, hit.passage) for hit in hits]
    engine.add(pd.DataFrame([row(2)]))
    assert engine.info()["texts_cut"].startswith("2 of 8 texts")
    engine.remove("e2")
    engine.compact()
    found = engine.search("who sold the ferry of Carrow")
    assert [(hit.id, hit.score, hit.passage) for hit in found] == before


@pytest.mark.slow  # encodes by the static table
def test_a_segment_without_passages_leaves_those_after_it_readable(tmp_path):
    pytest.importorskip("wordllama")
    notes = pd.DataFrame([{"id": f"n{n}", "title": f"Note {n}"} for n in range(16)])
    base = pd.concat([EPISODES[:1], notes[1:]], ignore_index=True)
    engine = qkv.build(tmp_path / "w", items=base, encoder="static")
    engine.add(notes[:1])
    engine.add(EPISODES[1:2])
    assert engine.info()["segments"] == 3
    query = "who sold the ferry of Tessaly"
    before = [(hit.id, hit.score, hit.passage) for hit in engine.search(query, k=2)]
    assert before[0][0] == "e1"
    engine.compact()
    assert [(hit.id, hit.score, hit.passage) for hit in engine.search(query, k=2)] == before


def test_a_text_that_loses_its_html_loses_its_times(tmp_path):
    text = " ".join(f"<b>Word{i}</b> is said here." for i in range(400))
    cues = [[text.index(f"<b>Word{i}<"), 10 * i, 10 * i + 9] for i in range(400)]
    items = pd.DataFrame(
        {"id": ["a"], "title": ["One talk"], "text": [text], "text_times": [json.dumps(cues)]}
    )
    with qkv.build(tmp_path / "ws", items=items, encoder="corpus") as engine:
        (hit,) = engine.search("word350")
        assert "Word350" in hit.passage["text"]
        assert "start" not in hit.passage
        assert any("1 cell emptied" in note for note in engine.snapshot.facts["rows"])
        assert engine.show("a")["original"]["text_times"] == json.dumps(cues)
        assert engine.sync(items).changed == 0

        changed = items.assign(id="b", text=items["text"].str.replace("Word", "Term"))
        done = engine.add(changed)
        assert any("1 cell emptied" in note for note in done.notes)
        hit = engine.search("term350")[0]
        assert "Term350" in hit.passage["text"]
        assert "start" not in hit.passage


def test_a_passage_has_the_short_texts_of_its_item_and_no_other_long_one():
    long_text, other = "They burned peat. " * 200, "She carved oars. " * 200
    fields = [["Kilns", "Mills"], [long_text, "wind"], [other, long_text]]
    split = Passages.of(fields)
    columns = split.fields(fields)
    units = list(zip(*columns, strict=True))
    assert [len(column) for column in columns] == [len(split)] * 3
    for (title, first, second), item, (own, start, end) in zip(
        units, split.items, split.spans.tolist(), strict=True
    ):
        assert title == fields[0][item]
        expected = [["", ""], ["wind", ""]][item]
        expected[own - 1] = fields[own][item][start:end]
        assert [first, second] == expected
    assert columns[1][-2:] == ["wind", "wind"]

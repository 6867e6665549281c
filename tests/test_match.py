"""The grade of a hit: strong, good or weak."""


def matches(engine, text, **options):
    return {hit.title: hit.match for hit in engine.search(text, **options)}


def test_an_item_with_all_words_is_strong_however_many_there_are(videos):
    found = matches(videos, "river bank")
    assert found["Walking the river bank at first light"] == "strong"
    assert "strong" in matches(videos, "guitar").values()
    few = matches(videos, "guitar spaceship")
    assert few
    assert "strong" not in few.values()


def test_what_answers_nothing_is_weak(videos):
    assert set(matches(videos, "xyzzyqq plugh", anyway=True).values()) <= {"weak"}
    assert set(matches(videos, "je ne sais pas quoi", anyway=True).values()) == {"weak"}


def test_a_grade_does_not_depend_on_what_else_is_shown(videos):
    text = "walking along a river bank in the early light of morning"
    whole = matches(videos, text, k=10)
    title, grade = next(iter(whole.items()))
    assert grade == "strong"
    second = list(whole)[1]
    left_out = f"title <> '{title}'"
    assert matches(videos, text, where=left_out)[second] == whole[second] != "strong"
    assert matches(videos, text, k=9, offset=1) == dict(list(whole.items())[1:])


def test_only_searches_for_words_have_grades(videos):
    assert "match" in videos.search("xyzzyqq").to_frame().columns
    assert "match" not in videos.similar("v001").to_frame().columns
    (hit,) = videos.search("", k=1)
    assert hit.match is None

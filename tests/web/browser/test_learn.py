"""The course in a browser: progress that stays, by mouse and by keyboard, in the site's frame."""

import re

import pytest

from qkvsearch.lessons import lesson

QUICK = "self-attention"
PAGED = "ask-match-mix"
DONE = "button.done"


@pytest.fixture(scope="module")
def taught():
    return lesson(QUICK)


def told(page):
    return page.locator("#progress").inner_text()


def answered(page, quiz, right):
    """Answer a question of the lesson's page."""
    form = page.locator(f'[data-quiz="{quiz.name}"]')
    if quiz.choices:
        choice = int(quiz.answer) if right else (int(quiz.answer) + 1) % len(quiz.choices)
        form.locator("input").nth(choice).check()
    else:
        form.locator("input").fill(quiz.solution if right else "1000001")
    form.locator("button").click()
    return form


def test_marks_and_answers_are_there_when_one_comes_back(visit, site, taught, rested):
    steps, questions = len(taught.steps), len(taught.quizzes)
    with visit(site, f"/learn/{QUICK}") as page:
        assert told(page) == f"0 of {steps} steps read, 0 of {questions} questions right"
        right = answered(page, taught.quizzes[0], right=True)
        assert right.get_attribute("data-verdict") == "right"
        answered(page, taught.quizzes[1], right=False)
        assert f"1 of {questions} questions right" in told(page)
        rested(page)  # what was scrolled past is marked as well
        before = told(page)
        read = before.partition(" ")[0]

        page.goto(f"{site.url}/learn?lang=zh")  # progress has no language
        page.goto(f"{site.url}/learn/{QUICK}?lang=zh")
        assert f"{read}" in told(page)
        page.goto(f"{site.url}/learn/{QUICK}")
        assert told(page) == before
        verdicts = [
            page.locator(f'[data-quiz="{q.name}"]').get_attribute("data-verdict")
            for q in taught.quizzes
        ]
        assert verdicts == ["right", "wrong", *[None] * (questions - 2)]

        page.goto(f"{site.url}/learn")
        entry = page.locator(f'[data-lesson="{QUICK}"] .progress')
        page.wait_for_function("e => e.textContent", arg=entry.element_handle())
        assert entry.inner_text() == before
        assert f"/learn/{QUICK}#{QUICK}-" in page.locator("#resume").get_attribute("href")
        page.once("dialog", lambda dialog: dialog.accept())
        page.locator("#forget").click()
        assert entry.inner_text().startswith("0 of")
        assert "Begin" in page.locator("#resume").inner_text()
        assert page.evaluate("JSON.parse(localStorage['qkvsearch-course']).last") is None


def test_a_step_is_read_once_it_was_scrolled_past(visit, site, taught, expect):
    with visit(site, f"/learn/{QUICK}", viewport={"width": 900, "height": 700}) as page:
        page.mouse.move(400, 400)
        for _ in range(6):
            page.mouse.wheel(0, 400)
        expect(page.locator("#progress")).not_to_have_text(re.compile("^0 of"), timeout=10_000)
        assert told(page).partition(" ")[0] != str(len(taught.steps))
        assert page.locator(DONE).get_attribute("aria-pressed") == "false"


def test_one_button_marks_the_whole_lesson_and_takes_it_back(visit, site, taught):
    with visit(site, f"/learn/{QUICK}") as page:
        done = page.locator(DONE)
        assert done.count() == 1
        done.click()
        assert told(page).startswith(f"{len(taught.steps)} of {len(taught.steps)} steps read")
        assert done.inner_text() == "✓ Done"
        done.click()
        assert told(page).startswith("0 of")
        assert done.inner_text() == "Mark as read"


def test_what_is_explained_is_there_when_one_comes_back_and_in_print(visit, site):
    sentence = "Every word asks all words.\n每个词都在提问。"
    with visit(site, f"/learn/{QUICK}") as page:
        page.locator("textarea").fill(sentence)
        page.goto(f"{site.url}/learn/{QUICK}?lang=zh")
        assert page.locator("textarea").input_value() == sentence
        page.emulate_media(media="print")
        assert page.locator("textarea").is_visible()


def test_lesson_0_shows_one_step_at_a_time(visit, site, expect):
    first = lesson(PAGED)
    with visit(site, f"/learn/{PAGED}") as page:
        forth = page.get_by_role("button", name="Next step")
        for n in range(1, len(first.steps) + 1):
            assert page.locator(".step:visible").count() == 1
            assert page.locator(f"#{PAGED}-{n}").is_visible()
            # One count of steps, which is that of the lesson.
            assert page.locator(".place").inner_text() == f"{n} / {len(first.steps)}"
            assert told(page) == f"0 of {len(first.quizzes)} questions right"
            here = page.locator('#contents a[aria-current="step"]')
            assert here.evaluate_all("all => all.map(one => one.hash)") == [f"#{PAGED}-{n}"]
            forth.click()
        assert page.locator(".place").inner_text() == ""
        assert page.locator(DONE).inner_text() == "✓ Done"
        assert page.locator(".step:visible").count() == 0
        assert page.locator("textarea").is_visible()
        assert page.locator("[data-quiz]").first.is_visible()
        assert forth.is_hidden()
        page.go_back()
        expect(page.locator(f"#{PAGED}-{len(first.steps)}")).to_be_visible()
        page.goto(f"{site.url}/learn/{PAGED}#{PAGED}-3")
        assert page.locator(f"#{PAGED}-3").is_visible()
        page.emulate_media(media="print")
        assert page.locator(".step:visible").count() == len(first.steps)


def test_by_keyboard_alone(visit, site, taught, expect):
    with visit(site, f"/learn/{QUICK}") as page:
        page.locator(DONE).focus()
        page.keyboard.press("Enter")
        assert page.locator(DONE).get_attribute("aria-pressed") == "true"
        assert "marked as read" in page.locator("#said").inner_text()
        page.keyboard.press("?")
        assert "next lesson" in page.locator("dialog").inner_text()
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_have_count(0)
        page.keyboard.press("n")
        page.wait_for_url("**/learn/masks")
        page.keyboard.press("p")
        page.wait_for_url(f"**/learn/{QUICK}")


def test_storage_that_is_damaged_or_forbidden_stops_nothing(visit, site):
    with visit(site, f"/learn/{QUICK}") as page:
        for kept in (
            "{",
            "null",
            '{"read": {"a": 1}, "answers": {}}',
            '{"read": {}, "answers": {"x": 3}}',
        ):
            page.evaluate("kept => localStorage.setItem('qkvsearch-course', kept)", kept)
            page.reload()
            assert told(page).startswith("0 of")
        page.add_init_script(
            "Object.defineProperty(window, 'localStorage', {get() { throw new Error('no'); }})"
        )
        page.reload()
        page.locator(DONE).click()
        assert not told(page).startswith("0 of")
        assert "keeps nothing" in told(page)

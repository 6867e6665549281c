"""The course in a browser: progress that stays, by mouse and by keyboard, in the site's frame."""

import pytest

from qkvsearch.lessons import lesson

QUICK = "self-attention"


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
        page.locator(f"#{QUICK}-2 .read").click()
        right = answered(page, taught.quizzes[0], right=True)
        assert right.get_attribute("data-verdict") == "right"
        answered(page, taught.quizzes[1], right=False)
        marks = page.locator('.read[aria-pressed="true"]')
        assert f"1 of {questions} questions right" in told(page)
        rested(page)  # what was scrolled past is marked as well
        read = marks.count()
        before = told(page)

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
        first = page.locator(f"#{QUICK}-1 .read")
        assert first.get_attribute("aria-pressed") == "false"
        page.mouse.move(400, 400)
        for _ in range(6):
            page.mouse.wheel(0, 400)
        expect(first).to_have_attribute("aria-pressed", "true")
        last = page.locator(f"#{QUICK}-{len(taught.steps)} .read")
        assert last.get_attribute("aria-pressed") == "false"


def test_by_keyboard_alone(visit, site, taught, expect):
    with visit(site, f"/learn/{QUICK}") as page:
        page.locator(f"#{QUICK}-1 .read").focus()
        page.keyboard.press("Enter")
        assert page.locator(f"#{QUICK}-1 .read").get_attribute("aria-pressed") == "true"
        assert "7.1" in page.locator("#said").inner_text()
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
        page.locator(f"#{QUICK}-1 .read").click()
        assert told(page).startswith("1 of")
        assert "keeps nothing" in told(page)

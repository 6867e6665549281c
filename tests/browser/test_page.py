"""The page answers: every workbench computes what the engine does, and quizzes are judged alike."""

import zlib

import numpy as np
import pytest

from qkvsearch.lessons import LESSONS
from qkvsearch.lessons.workbench import PROJECTED

pytestmark = pytest.mark.xdist_group("browser")

WITHOUT_WORKBENCH = ("ask-match-mix", "mask-details", "check")

CLOSE = {"rtol": 1e-6, "atol": 1e-6}
EDITS = 4


def agree(found, bench, given, **changed):
    wanted = bench.steps(given, **changed)
    assert set(wanted) <= set(found)
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, **CLOSE, err_msg=name)


def cell(section, name, i, j):
    row = section.locator(f'[data-given="{name}"] tbody tr').nth(i)
    return row.locator("td").nth(j).locator("input")


def choose(section, control, value):
    section.locator(f'select[data-control="{control}"]').select_option(value)


def write(section, control, value):
    field = section.locator(f'input[data-control="{control}"]')
    field.fill(value)
    field.press("Enter")


@pytest.mark.parametrize("name", [n for n in LESSONS if n not in WITHOUT_WORKBENCH])
def test_whatever_is_edited_is_computed_as_the_engine_does(
    name, visit, lesson_file, workbenches, matrices
):
    """Random cells, then every mask, normalizer, and random scales, from random matrices on."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    ours = [bench for lesson, bench in workbenches if lesson.name == name]
    assert ours
    with visit(lesson_file(name)) as page:
        for bench in ours:
            section = page.locator(f'[data-bench="{name}.{bench.name}"]')
            agree(matrices(section), bench, {})
            given = {name: np.array(array, dtype=float) for name, array in bench.matrices.items()}
            for matrix in given:
                edit_cells(section, matrix, given[matrix], rng)
                agree(matrices(section), bench, given)
            if "weights" in bench.steps():
                turn_controls(section, bench, given, rng, matrices)


def edit_cells(section, name, array, rng):
    table = section.locator(f'[data-given="{name}"]')
    opened = np.flatnonzero(
        table.locator("tbody td").evaluate_all("all => all.map(td => !!td.querySelector('input'))")
    )
    for place in rng.permutation(opened)[:EDITS]:
        i, j = divmod(int(place), array.shape[1])
        array[i, j] = rng.uniform(-3, 3)
        entry = cell(section, name, i, j)
        entry.fill(repr(float(array[i, j])))
        if rng.random() < 0.5:
            entry.press("Enter")
        else:
            entry.blur()


def turn_controls(section, bench, given, rng, matrices):
    scale, temperature = (round(number, 3) for number in rng.uniform(0.2, 3, size=2))
    write(section, "scale", str(scale))
    agree(matrices(section), bench, given, scale=scale)
    write(section, "temperature", str(temperature))
    changed = {"scale": scale, "temperature": temperature}
    agree(matrices(section), bench, given, **changed)
    for normalize in ("relu", "none", "softmax"):
        choose(section, "normalize", normalize)
        for mask in bench.masks:
            if len(bench.masks) > 1:
                choose(section, "mask", mask)
            agree(matrices(section), bench, given, mask=mask, normalize=normalize, **changed)


def test_a_query_with_nothing_to_attend_to_gets_zeros(bench, matrices):
    choose(bench, "normalize", "relu")
    for j in range(4):
        write_cell(bench, "inputs", 0, j, "0")
    assert matrices(bench)["weights"][0] == [0, 0, 0]
    assert matrices(bench)["outputs"][0] == [0, 0, 0]


def write_cell(section, name, i, j, text):
    entry = cell(section, name, i, j)
    entry.fill(text)
    entry.press("Enter")
    return entry


def test_what_is_no_number_is_said_beside_it_and_the_last_result_stays(bench, matrices):
    write_cell(bench, "inputs", 0, 0, "1/4")
    before = matrices(bench)
    assert before["inputs"][0][0] == 0.25
    entry = write_cell(bench, "inputs", 0, 1, "two")
    assert entry.get_attribute("aria-invalid") == "true"
    message = bench.locator(f"#{entry.get_attribute('aria-describedby')}")
    assert message.inner_text() == "“two” is not a number. 0 still counts."
    assert matrices(bench) == before
    write_cell(bench, "inputs", 2, 2, "1e999")
    assert matrices(bench) == before
    for place in ((0, 1), (2, 2)):
        cell(bench, "inputs", *place).press("Escape")
    assert bench.locator(".problem, [aria-invalid]").count() == 0


def test_a_scale_is_above_zero_and_may_be_written_as_in_the_books(bench, matrices):
    before = matrices(bench)
    for control in ("scale", "temperature"):
        write(bench, control, "0")
        assert bench.locator(".problem").inner_text().startswith("“0” is not a number above 0")
        bench.locator(f'[data-control="{control}"]').press("Escape")
    assert matrices(bench) == before
    write(bench, "scale", "1/√3")
    np.testing.assert_allclose(
        matrices(bench)["scaled"], np.array(before["scores"]) / np.sqrt(3), **CLOSE
    )


def test_reset_takes_everything_back(bench, matrices):
    before = matrices(bench)
    write_cell(bench, "w_key", 1, 1, "7")
    choose(bench, "mask", "both")
    choose(bench, "normalize", "none")
    write(bench, "scale", "3")
    write_cell(bench, "inputs", 1, 1, "?")
    assert matrices(bench)["outputs"] != before["outputs"]
    bench.get_by_role("button", name="Reset").click()
    assert matrices(bench) == before
    assert cell(bench, "w_key", 1, 1).input_value() == "1"
    assert bench.locator('[data-control="mask"]').input_value() == "none"
    assert bench.locator(".problem, .hides").count() == 0


def test_what_was_computed_is_said_once_the_reader_pauses(bench, matrices):
    status, clock = bench.get_by_role("status"), bench.page.clock
    clock.install(time=0)
    clock.pause_at(1000)
    for number in ("3", "0"):
        write_cell(bench, "inputs", 0, 0, number)
        clock.run_for(599)
        assert status.inner_text() == ""
    clock.run_for(1)
    said = status.inner_text()
    first = ", ".join(
        f"{number:.2f}".rstrip("0").rstrip(".") for number in matrices(bench)["outputs"][0]
    )
    assert said == f"Computed again. outputs, first row: {first}"


def test_cells_are_moved_between_and_edited_by_keyboard_alone(bench, matrices):
    """One cell of a matrix is in the order of Tab; arrows reach the others."""
    keys, page = bench.page.keyboard, bench.page
    focused = "document.activeElement.getAttribute('aria-label')"
    cell(bench, "inputs", 0, 0).focus()
    for key, label in (
        ("ArrowRight", "inputs X, row a, column 2"),
        ("ArrowDown", "inputs X, row b, column 2"),
        ("ArrowDown", "inputs X, row c, column 2"),
        ("ArrowDown", "inputs X, row c, column 2"),
        ("ArrowLeft", "inputs X, row c, column 1"),
        ("ArrowUp", "inputs X, row b, column 1"),
    ):
        keys.press(key)
        assert page.evaluate(focused) == label
    keys.type("0.5")
    keys.press("ArrowLeft")
    assert page.evaluate(focused) == "inputs X, row b, column 1", "the caret moves within a text"
    keys.press("Enter")
    assert matrices(bench)["inputs"][1][0] == 0.5
    keys.press("Tab")
    assert page.evaluate(focused) == "WQ, row 1, column 1"
    keys.press("Shift+Tab")
    assert page.evaluate(focused) == "inputs X, row b, column 1"
    assert list(
        bench.evaluate("b => [...b.querySelectorAll('[data-given]')].map(t => t.dataset.given)")
    ) == list(PROJECTED)

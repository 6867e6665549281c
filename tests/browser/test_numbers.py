"""Numbers on the page: written, shaded and read as Python does, before the first edit and after."""

import zlib

import numpy as np
import pytest

from qkvsearch.lessons.exports.page.figures import heat
from qkvsearch.lessons.messages import decimals_of, shown, shown_power, with_decimals

pytestmark = pytest.mark.xdist_group("browser")

# In the middle of two decimals, of two exponents, of two forms.
ODD = [0.03125, 0.09375, 2.84375, 0.00005, 5e-6, 6.25e-5, 9.99995, 1e16, 123456789012345678.0]
ODD += [1e21, 1.25e22, 1e300, 5e-324, 0.1, 1 / 3, 100.0, 1e5, 0.0]
WORDS = ["inf", "-inf", "nan"]
CELLS = """bench => [...bench.querySelectorAll("td")].map(cell =>
  [cell.querySelector("input")?.value ?? cell.innerText, cell.dataset.heat, cell.className])"""


def test_a_number_is_written_as_python_writes_it(visit, lesson_file):
    rng = np.random.default_rng(zlib.crc32(b"shown"))
    odd = rng.integers(-(2**20), 2**20, size=200) / 32
    drawn = rng.normal(size=200) * 10.0 ** rng.integers(-9, 24, size=200)
    given = [sign * number for number in ODD for sign in (1, -1)] + [*odd, *drawn]
    given = [float(number) for number in given]
    with visit(lesson_file("masks")) as page:
        written = page.evaluate("given => given.map(numbers.shown)", given)
        words = page.evaluate("given => given.map(numbers.held).map(numbers.shown)", WORDS)
    assert written == [shown(number) for number in given]
    assert words == [shown(float(word)) for word in WORDS]


def test_numbers_of_a_kind_and_powers_are_written_as_python_writes_them(visit, lesson_file):
    rng = np.random.default_rng(zlib.crc32(b"kinds"))
    kinds = [rng.normal(size=8).round(place).tolist() for place in (0, 1, 2, 6)]
    kinds += [[0.0, 0.003], [4.0, 5.9, 0.125], [1e7, 0.5]]
    powers = [*np.exp(rng.uniform(-12, 60, size=60)).tolist(), float("inf")]
    with visit(lesson_file("ask-match-mix")) as page:
        written = page.evaluate(
            """kinds => kinds.map(kind =>
                kind.map(one => numbers.withDecimals(one, numbers.decimalsOf(kind))))""",
            kinds,
        )
        large, small = (
            page.evaluate(
                "([powers, most]) => powers.map(one => numbers.shownPower(one, most))",
                [powers, most],
            )
            for most in (1000, 9)
        )
    for kind, found in zip(kinds, written, strict=True):
        decimals = decimals_of(np.array(kind))
        assert found == [with_decimals(number, decimals) for number in kind]
    assert large == [shown_power(power, 1000) for power in powers]
    assert small == [shown_power(power, 9) for power in powers]


def test_a_weight_is_shaded_as_python_shades_it(visit, lesson_file):
    given = [*(np.arange(-10, 41) / 20).tolist(), 0.0499999, 1e300]
    with visit(lesson_file("masks")) as page:
        shades = page.evaluate("given => given.map(numbers.heat)", given)
        odd = page.evaluate("given => given.map(numbers.held).map(numbers.heat)", WORDS)
    assert shades == [heat(number) for number in given]
    assert odd == [heat(float(word)) for word in WORDS]


def test_computing_again_what_nobody_edited_changes_nothing(visit, file, workbenches):
    with visit(file) as page:
        for lesson, bench in workbenches:
            section = page.locator(f'[data-bench="{lesson.name}.{bench.name}"]')
            before = section.evaluate(CELLS)
            section.get_by_role("button", name="Reset").click()
            assert section.evaluate(CELLS) == before, bench.name
            assert section.locator("[data-changed]").count() == 0, bench.name


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("√3", np.sqrt(3)), ("-√4", -2), ("1/√3", 1 / np.sqrt(3)), ("2 / √ 16", 0.5),
        ("2√3", None), ("2 √3", None), ("2.√3", None), ("1e√4", None), ("√4√4", None),
        ("1,5", 1.5), ("-0,5/2", -0.25), ("１，５", 1.5), ("1,2,3", None),
        ("√4e2", None), ("√", None), ("√-4", None), ("∞", None), ("1/0", None), ("NaN", None),
    ],
)  # fmt: skip
def test_a_root_stands_alone_and_a_comma_is_decimal(text, number, visit, lesson_file):
    with visit(lesson_file("masks")) as page:
        found = page.evaluate("text => numbers.one(text)", text)
    assert found == pytest.approx(np.nan if number is None else number, nan_ok=True)

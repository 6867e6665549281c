"""`teach LESSON`: what a lesson looks like in the terminal, in either language."""

import re
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from qkvsearch.lessons import COURSE_LESSONS
from qkvsearch.lessons.messages import LOCALE, shown

GUIDE = Path(__file__).parents[3] / "docs" / "guide.md"
NAME = "self-attention"
needs_chinese = pytest.mark.skipif(
    not any(LOCALE.glob("zh/*/*.mo")), reason="the Chinese catalog is not made yet"
)


def plain(text):
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def widest(text):
    return max(map(cell_len, plain(text).splitlines()))


def test_a_lesson_shows_every_title_and_every_number(qkv, taught):
    text = qkv("teach", NAME).stdout
    for number, step in enumerate(taught.steps, start=1):
        assert f"Step {number} of 8: {step.title}\n" in text
    for row in taught.showing(44).computed["output"], *taught.showing(42).computed["weights"]:
        for value in row:
            assert shown(value) in text


def test_a_drawing_that_ends_with_weights_shows_weights(qkv):
    text = qkv("teach", "ask-match-mix", "--step", 3).stdout
    drawing = text[text.rindex("Scores become weights") :]
    assert re.findall(r"[█-▏]+ ([\d.]+)", drawing)[:3] == ["0.31", "0.18", "0.093"]


def test_a_matrix_is_aligned_with_its_labels_name_and_role(qkv):
    text = qkv("teach", NAME, "--step", 2).stdout
    assert "W_V (weight matrix)\n   1  2  3\n1  0  2  0\n2  0  3  0\n3  1  0  3\n" in text
    text = qkv("teach", NAME, "--step", 5).stdout
    row = "b    ≈0       █ 0.98    0.018\n"
    assert f"weights\n           a       b        c\na     0.063   ▒ 0.47  ▒ 0.47\n{row}" in text
    more = qkv("teach", NAME, "--step", 5, "--digits", 4).stdout
    assert "▒ 0.4683" in more
    assert "0.000006" in more
    assert "░ 0.2  ▒ 0.4  ▓ 0.6  █ 0.8" in text


def test_symbols_stand_one_below_another(qkv):
    scores = qkv("teach", NAME, "--step", 4).stdout
    assert "\n  b_Q·c_K = 12\n" in scores
    assert (
        "  a1·k11 + a2·k21 + a3·k31 + a4·k41 = 0\n" in qkv("teach", "appendix", "--step", 4).stdout
    )
    assert "  c = S_ca·a_V + S_cb·b_V + S_cc·c_V\n" in qkv("teach", NAME, "--step", 8).stdout


def test_the_mask_is_seen_without_colour(qkv):
    text = qkv("teach", "masks", "--step", 7).stdout
    assert re.search(r"^a  5\.66 +· −∞ +· −∞ +· −∞$", text, re.M)
    assert re.search(r"^a  █ 1 +· 0 +· 0 +· 0$", text, re.M)
    assert "· hidden by the mask." in text


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("lang", ["en", pytest.param("zh", marks=needs_chinese)])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_cut(
    qkv, computed, monkeypatch, columns, lang
):
    monkeypatch.setenv("COLUMNS", str(columns))
    answer = qkv("teach", "--all", "--lang", lang)
    assert answer.code == 0, answer.stderr
    assert widest(answer.stdout) <= columns
    assert "\x1b" not in answer.stdout
    found = [computed(name) for name in COURSE_LESSONS]
    numbers = sum(len(one.steps) for one in found)
    headings = re.findall(r"^(?:Step \d+ of \d+|第 \d+ 步（)", answer.stdout, re.M)
    assert len(headings) == numbers


@needs_chinese
@pytest.mark.parametrize(
    ("environment", "is_chinese"),
    [
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LC_ALL": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, False),
        ({"LANG": "C.UTF-8"}, False),
        ({}, False),
    ],
)
def test_the_language_is_that_of_the_system(qkv, monkeypatch, environment, is_chinese):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert bool(re.search("[\u4e00-\u9fff]", qkv("teach").stdout)) == is_chinese
    assert not re.search("[\u4e00-\u9fff]", qkv("teach", "--lang", "en").stdout)


def test_colour_is_all_that_no_color_takes_away(qkv, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    coloured = qkv("teach", NAME).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    without = qkv("teach", NAME).stdout
    monkeypatch.setenv("TERM", "dumb")
    dumb = qkv("teach", NAME).stdout
    assert "\x1b[38" in coloured or "\x1b[1;38" in coloured
    assert not re.search(r"\x1b\[(\d+;)*38", without)
    assert "\x1b" not in dumb
    assert plain(coloured) == plain(without) == dumb


def test_a_wide_matrix_comes_in_parts(qkv, monkeypatch, tmp_path):
    rows = [",".join(str(100 * i + j) for j in range(40)) for i in range(3)]
    (tmp_path / "x.csv").write_text("\n".join(rows))
    for name in ("wq", "wk", "wv"):
        (tmp_path / f"{name}.csv").write_text("1\n" * 40)
    files = [f"--{name}={name}.csv" for name in ("wq", "wk", "wv")]
    text = qkv("teach", NAME, "--step", 1, "--input", "x.csv", *files).stdout
    assert widest(text) <= 80
    parts = re.findall(r"^c  (.*)$", text, re.M)
    assert len(parts) > 1
    assert " ".join(parts).split() == [str(200 + j) for j in range(40)]


def test_the_guide_shows_what_is_printed(qkv):
    guide = GUIDE.read_text("utf-8")
    command, printed = re.search(r"```console\n\$ qkvsearch (teach .*)\n([^`]*)```", guide).groups()
    assert qkv(*command.split()).stdout == printed

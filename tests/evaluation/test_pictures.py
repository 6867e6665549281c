"""Pictures of an evaluation: the right numbers, without a window or a changed setting."""

import xml.etree.ElementTree
from dataclasses import fields, replace
from itertools import combinations

import pytest

from qkvsearch.evaluation.clicks.evaluated import ClickEvaluation
from qkvsearch.evaluation.groups import GradeGroup
from qkvsearch.evaluation.made_queries.popularity import FirstByPopularity
from qkvsearch.evaluation.made_queries.report import KindFigures
from qkvsearch.evaluation.pictures.made_panels import made_panels
from qkvsearch.evaluation.pictures.palette import NAMES
from qkvsearch.evaluation.pictures.panel import Panel, PanelShape, Series
from qkvsearch.evaluation.recommend_protocol import evaluate_recommend
from qkvsearch.evaluation.results import Evaluation

matplotlib = pytest.importorskip("matplotlib", reason="drawing needs the extra [plot]")

from qkvsearch.cli.evaluation_page import to_page  # noqa: E402
from qkvsearch.evaluation.pictures.figure import draw, draw_bare, to_bytes  # noqa: E402

SHARES = Panel(
    "Parts of a whole",
    PanelShape.STACKED,
    "",
    ["one", "two"],
    "share (%)",
    [
        Series("first", [0.5, 0.25], [(0.4, 0.6), (0.2, 0.3)]),
        Series("later", [0.25, 0.25]),
        Series("missing", [0.25, 0.5]),
    ],
    is_share=True,
    counts=[8, 4],
    counted="queries",
)
SEARCH = Evaluation(
    "judged queries",
    {"ndcg@10": 0.5, "mrr@10": 0.75},
    {"lexical": {"ndcg@10": 0.25, "mrr@10": 0.5}},
    {"queries": 4},
    {"ndcg@10": (0.4, 0.6)},
    match_grades={
        "strong": GradeGroup(4, 0.75, (0.5, 1.0)),
        "good": GradeGroup(0, None, None),
        "weak": GradeGroup(20, 0.1, (0.0, 0.2)),
    },
)


@pytest.fixture(scope="module")
def recommended(log):
    return evaluate_recommend(log)


def test_bars_are_as_long_as_the_figures():
    metrics, grades = SEARCH.plot().axes
    assert sorted(bar.get_width() for bar in metrics.patches) == [0.25, 0.5, 0.5, 0.75]
    assert sorted(bar.get_width() for bar in grades.patches) == [0.1, 0.75]
    names = [label.get_text() for label in grades.get_yticklabels()]
    assert [name.split(",")[0] for name in names] == ["strong", "weak"], "no hit is good"
    assert grades.yaxis_inverted(), "the first is at the top"


def test_parts_of_a_bar_lie_one_after_the_other():
    (axes,) = draw([SHARES]).axes
    bars = sorted(axes.patches, key=lambda bar: (round(bar.get_y()), bar.get_x()))
    assert [bar.get_x() for bar in bars[:3]] == [0, 0.5, 0.75]
    assert bars[5].get_x() + bars[5].get_width() == 1


def test_lines_run_through_the_figures(recommended):
    by_title = {axes.get_label(): axes for axes in recommended.plot().axes}
    axes = by_title["Quality by length of the user's history"]
    ours, popularity = axes.containers[0].lines[0], axes.containers[1].lines[0]
    groups = recommended.by_history
    assert ours.get_ydata().tolist() == [group.values["qkvsearch"] for group in groups]
    assert popularity.get_ydata().tolist() == [group.values["popularity"] for group in groups]
    assert len(by_title) == 6, "every panel has a title of its own"


def test_every_panel_says_what_its_numbers_are(recommended):
    for figure, panels in (
        (recommended.plot(), recommended.panels()),
        (SEARCH.plot(), SEARCH.panels()),
        (draw([SHARES]), [SHARES]),
    ):
        written = " ".join(text.get_text().replace("\n", " ") for text in figure.texts)
        for panel in panels:
            assert panel.title in written
            assert panel.value_axis in written
            assert panel.note in written


def seen_labels(axis):
    """The labels within the view; matplotlib has some beyond it, which it does not draw."""
    low, high = sorted(axis.get_view_interval())
    pairs = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
    return [label for place, label in pairs if low <= place <= high]


@pytest.mark.slow
def test_texts_neither_overlap_nor_leave_the_picture(recommended):
    long = Panel(
        "Groups with long names",
        PanelShape.LINES,
        "users",
        [f"{n},000–1{n},999" for n in range(1, 6)],
        "share",
        [Series(f"series {n}", [0.5] * 5) for n in range(7)],
        counts=[12345] * 5,
        counted="users",
        note="A long note on what is seen here, which does not fit into one line. " * 2,
    )
    figures = [recommended.plot(), SEARCH.plot(), draw([SHARES, long, long], "A headline")]
    figures += [draw_bare(panel) for panel in (*recommended.panels(), SHARES, long)]
    for figure in figures:
        figure.canvas.draw()
        texts = list(figure.texts)
        for axes in figure.axes:
            texts += [*seen_labels(axes.xaxis), *seen_labels(axes.yaxis), *axes.texts]
            if axes.get_legend():
                texts += axes.get_legend().get_texts()
        boxes = {text: text.get_window_extent() for text in texts if text.get_text()}
        for one, other in combinations(boxes, 2):
            assert not boxes[one].overlaps(boxes[other]), (one.get_text(), other.get_text())
        for text, box in boxes.items():
            assert box.x0 >= 0, text.get_text()
            assert box.y0 >= 0, text.get_text()
            assert box.x1 <= figure.bbox.x1, text.get_text()


def test_a_picture_of_clicks_counts_clicks():
    clicks = ClickEvaluation("clicks", {"mrr@10": 0.5}, facts={"queries": 7, "clicks": 40})
    panel = clicks.panels()[0]
    assert panel.title == "Quality by 40 clicks"
    assert "mean of the clicks" in panel.value_axis


def test_nothing_of_the_user_changes():
    names = [name for name in matplotlib.rcParams if name != "backend"]
    with matplotlib.rc_context({"font.size": 30}):
        before = {name: matplotlib.rcParams[name] for name in names}
        to_bytes(SEARCH.plot(), "svg")
        assert {name: matplotlib.rcParams[name] for name in names} == before


DRAWN = """
import sys
from qkvsearch.evaluation.results import Evaluation
assert "matplotlib" not in sys.modules
figure = Evaluation("judged queries", {"mrr@10": 0.5}, facts={"queries": 3}).plot()
figure.savefig("picture.png")
assert "matplotlib.pyplot" not in sys.modules
"""


@pytest.mark.slow
def test_a_picture_needs_no_pyplot(qkv_process, tmp_path):
    done = qkv_process(code=DRAWN)
    assert done.code == 0, done.stderr
    assert (tmp_path / "picture.png").exists()


def test_settings_of_the_user_do_not_change_the_picture():
    plain = to_bytes(SEARCH.plot(), "svg")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red"}):
        assert to_bytes(SEARCH.plot(), "svg") == plain


def test_a_notebook_shows_the_figure():
    assert SEARCH.plot()._repr_png_().startswith(b"\x89PNG\r\n")


def test_a_group_without_a_figure_leaves_a_gap():
    panel = Panel("Gap", PanelShape.LINES, "x", ["a", "b"], "y", [Series("s", [None, 0.5])])
    line = draw([panel]).axes[0].containers[0].lines[0]
    assert line.get_ydata()[1] == 0.5
    assert line.get_ydata()[0] != line.get_ydata()[0]


def test_made_queries_are_parts_of_their_kind_and_misses_are_counted_by_head():
    first = KindFigures(10, 0.5, 0.8, 0.2, (0.3, 0.7), 0.6, {"lexical": 3}, [], True, 0.4)
    second = KindFigures(
        4, 0.25, 0.25, 0.75, (0.0, 0.6), 0.25, {"lexical": 1, "lsa": 2}, [], True, 0.5
    )
    outcomes, beside, misses = made_panels({"title_typo": first, "description": second})
    assert [series.values for series in beside.series] == [[0.5, 0.25], [0.4, 0.5]]
    for group in range(2):
        assert sum(series.values[group] for series in outcomes.series) == pytest.approx(1)
    assert outcomes.series[1].values == pytest.approx([0.3, 0])
    assert outcomes.counts == [10, 4]
    assert (misses.groups, misses.counts) == (["lexical", "lsa"], [4, 2])
    assert misses.series[0].values == [4 / 8, 2 / 8]


def test_a_search_that_misses_nothing_has_no_panel_of_misses():
    all_first = KindFigures(10, 1.0, 1.0, 0.0, (0.7, 1.0), 1.0, {}, [], True, 1.0)
    titles = [panel.title for panel in made_panels({"title_typo": all_first})]
    assert len(titles) == 2
    assert not any("Misses" in title for title in titles)


def test_a_picture_says_which_kinds_compare_heads():
    blind = KindFigures(10, 1.0, 1.0, 0.0, (0.7, 1.0), 1.0, {}, ["typos"], True, 1.0)
    seeing = blind._replace(carries=["heads"])

    def note(**kinds):
        return [*made_panels(kinds)][1].note

    assert "None" in note(title_typo=blind)
    assert "only these kinds" in note(title_typo=blind, title_beginning=seeing)
    assert "title beginning" in note(title_typo=blind, title_beginning=seeing)
    assert note(title_beginning=seeing) == ""


def test_searches_by_popularity_are_lines():
    kind = KindFigures(10, 1.0, 1.0, 0.0, (0.7, 1.0), 1.0, {}, ["heads"], True, 1.0)
    groups = [
        FirstByPopularity(0, 4, 5, {"qkvsearch": 0.8, "lexical": 0.6}, (0.4, 1.0)),
        FirstByPopularity(5, 5, 5, {"qkvsearch": 1.0, "lexical": 0.2}, (0.5, 1.0)),
    ]
    panel = [*made_panels({"title_typo": kind}, groups)][2]
    assert (panel.groups, panel.counts) == (["0–4", "5"], [5, 5])
    assert [series.values for series in panel.series] == [[0.8, 1.0], [0.6, 0.2]]
    assert len([*made_panels({"title_typo": kind}, groups[:1])]) == 2, "one group is no line"
    draw([panel]).canvas.draw()


def test_the_numbers_of_an_axis_are_those_of_its_places():
    """Every 2.5%, and not 2%, 5%, 8%."""
    values = Series("first", [0.14, 0.045])
    panel = Panel(
        "Small shares", PanelShape.BARS, "", ["a", "b"], "share (%)", [values], is_share=True
    )
    figure = draw_bare(panel)
    figure.canvas.draw()
    axis = figure.axes[0].xaxis
    for place, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True):
        assert float(label.get_text().removesuffix("%")) == pytest.approx(100 * place)


# --- the page ---


def test_a_page_has_a_picture_and_a_table_for_each_panel(recommended):
    page = to_page(recommended)
    assert page.count("<svg") == page.count("</svg>") == 6
    for group in recommended.by_history:
        assert f">{group.values['ease']:.3f}<" in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/", "")


def test_names_in_pictures_of_a_page_are_unique_and_colours_are_of_its_style(recommended):
    page = to_page(recommended)
    body = page[page.index("<body>") : page.index("</html>")]
    tree = xml.etree.ElementTree.fromstring(body)
    names = [each.get("id") for each in tree.iter() if each.get("id")]
    assert len(names) == len(set(names))
    assert not [colour for colour in NAMES if colour in body]
    style = page[: page.index("</style>")]
    assert all(f"{name}:" in style for name in NAMES.values())


def test_examples_of_the_catalog_are_escaped():
    class Looked(Evaluation):
        def examples(self):
            return [{"query": "<b>x", "title": "一部\x1b电影", "rank": None}]

    page = to_page(Looked(**{each.name: getattr(SEARCH, each.name) for each in fields(SEARCH)}))
    assert "&lt;b&gt;x" in page
    assert "\x1b" not in page
    assert "部" in page


def test_evaluations_without_groups_still_have_a_picture(recommended):
    few = replace(recommended, by_history=recommended.by_history[:1], by_popularity=())
    assert len(few.plot().axes) == 3

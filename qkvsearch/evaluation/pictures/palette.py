"""The colours of pictures: safe for the colour-blind, in grey told apart by lightness or dashes.

Each has a name, so that a page can replace it by another where the reader prefers a dark screen.
"""

# Text, text that is less important, lines of the grid, and what is behind a picture.
INK, QUIET, GRID, PAPER = "#23272d", "#575d66", "#ddd7ca", "#ffffff"

# Of series. Ours is the darkest; dashes and markers in `shapes.py` tell the others apart as well.
SERIES = ("#0b4f8a", "#d55e00", "#2f9e77", "#b06a9c", "#7a808a")
# Of bars that are not ours.
OTHER = "#9fb4c9"
# Of the parts of a stacked bar, the best first, and of the text on each.
PARTS = ("#0c508b", "#8cbbe6", "#e9e5dc")
ON_PARTS = ("#fffffe", "#23272e", "#23272f")
# Of the intervals on them: seen on the first two parts.
WHISKER = "#d55e01"

# Each colour's name in the style of a page (`cli/page.css`). No colour has two names.
NAMES = {
    INK: "--ink",
    QUIET: "--quiet",
    GRID: "--line",
    PAPER: "--paper",
    OTHER: "--other",
    WHISKER: "--whisker",
    **{colour: f"--series-{number}" for number, colour in enumerate(SERIES, 1)},
    **{colour: f"--part-{number}" for number, colour in enumerate(PARTS, 1)},
    **{colour: f"--on-part-{number}" for number, colour in enumerate(ON_PARTS, 1)},
}

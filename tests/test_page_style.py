"""Pages, the course and reports have one scale of type, one unit of space and one palette."""

import re
from pathlib import Path

import pytest

import qkvsearch
from qkvsearch._utils.style import tokens

PACKAGE = Path(qkvsearch.__file__).parent
STYLE = Path(__file__).parent.parent / "docs" / "style.md"
SHEETS = sorted(PACKAGE.rglob("*.css"))
NAMES = [str(sheet.relative_to(PACKAGE)) for sheet in SHEETS]
# Where colours are named: those of all pages, and those of the series and bars of pictures.
PALETTES = {"_utils/style/tokens.css", "cli/page.css"}
# What is set within a line of any size.
WITHIN_A_LINE = {"code", "pre", "kbd", "sub", "sup"}
SIZES = re.compile(r"var\(--(size-[1-6]|drawn-[0-2])\)")
SPACES = re.compile(
    r"(?<![\w-])((?:margin|padding)(?:-[a-z-]+)?|gap|row-gap|column-gap)\s*:\s*([^;{}]+)"
)
COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|\b(?:rgba?|hsla?|oklch|lab)\(|:\s*(?:white|black|red)\b")
TEXTS = ("ink", "quiet", "accent", "good", "bad")
GROUNDS = ("paper", "card", "accent-soft", "mark")


def rules(sheet):
    """The rules of a style sheet as (selector, declarations), without comments."""
    text = re.sub(r"/\*.*?\*/", "", sheet.read_text(encoding="utf-8"), flags=re.DOTALL)
    for selector, declarations in re.findall(r"([^{}]*)\{([^{}]*)\}", text):
        yield selector.strip(), declarations


def is_within_a_line(selector):
    return set(re.split(r"[,\s>]+", selector)) & WITHIN_A_LINE


@pytest.mark.parametrize("sheet", SHEETS, ids=NAMES)
def test_every_size_of_type_is_of_the_scale(sheet):
    found = []
    for selector, declarations in rules(sheet):
        for name, value in re.findall(r"(?<![\w-])(font-size|font)\s*:\s*([^;]+)", declarations):
            size = value.strip()
            if name == "font" and size == "inherit":
                continue
            relative = re.fullmatch(r"[\d.]+em( var\(--mono\))?", size)
            if not SIZES.search(size) and not (relative and is_within_a_line(selector)):
                found.append((selector, size))
    assert found == []


@pytest.mark.parametrize("sheet", SHEETS, ids=NAMES)
def test_every_colour_is_of_the_palette(sheet):
    found = []
    for selector, declarations in rules(sheet):
        for declaration in declarations.split(";"):
            is_named = sheet.relative_to(PACKAGE).as_posix() in PALETTES and re.match(
                r"\s*--[\w-]+:", declaration
            )
            # A selector such as #hits is no colour, nor is a name of an animation.
            if COLOUR.search(declaration) and not is_named:
                found.append((selector, declaration.strip()))
    assert found == []


@pytest.mark.parametrize("sheet", SHEETS, ids=NAMES)
def test_every_space_is_a_multiple_of_the_unit(sheet):
    unit = float(re.search(r"--unit: ([\d.]+)rem", tokens())[1])
    found = []
    for selector, declarations in rules(sheet):
        for name, value in SPACES.findall(declarations):
            for amount in re.findall(r"(?<![\w.-])-?([\d.]+)rem", value):
                if (float(amount) / unit) % 1:
                    found.append((selector, name, value.strip()))
    assert found == []


def test_fonts_are_named_once():
    families = {
        (name, value.strip())
        for sheet, name in zip(SHEETS, NAMES, strict=True)
        for _, declarations in rules(sheet)
        for value in re.findall(r"font-family\s*:\s*([^;!]+)", declarations)
        if not re.fullmatch(r"inherit|var\(--(sans|mono)\)", value.strip())
    }
    assert families == set()


def test_everything_that_is_used_has_a_value():
    """A name that no file defines, such as that of a font that is gone, would be no error."""
    sources = [path for kind in ("css", "js", "py", "html") for path in PACKAGE.rglob(f"*.{kind}")]
    texts = [path.read_text(encoding="utf-8") for path in sources]
    defined = {name for text in texts for name in re.findall(r"(--[\w-]+)\"?[:,]", text)}
    used = {name for text in texts for name in re.findall(r"var\((--[\w-]+)\)", text)}
    assert len(used) > 20
    # Those of pictures of an evaluation are made by number, and so is one of Swagger UI.
    assert {
        name for name in used - defined if not re.match(r"--(series|part|on-part)", name)
    } == set()


# --- contrast ---


def palette(scheme):
    """The colours of the tokens by name, on a light or a dark screen."""
    light, dark = re.findall(r":root \{(.*?)\n\s*\}", tokens().split("@media print")[0], re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): #(\w{6});", light))
    if scheme == "dark":
        colours |= dict(re.findall(r"--([\w-]+): #(\w{6});", dark))
    return colours


def luminance(colour):
    """WCAG 2.2, relative luminance."""
    channels = [part / 255 for part in bytes.fromhex(colour)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(part * share for part, share in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_is_that_of_black_on_white():
    assert contrast("000000", "ffffff") == pytest.approx(21)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(scheme):
    colours = palette(scheme)
    for ground in GROUNDS:
        texts = ("ink",) if ground in ("accent-soft", "mark") else TEXTS
        for text in texts:
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for ground in ("deep", "deep-score", "deep-minus"):
        assert contrast(colours["ink"], colours[ground]) >= 4.5, ground
    for text in ("text-query", "text-key"):
        assert contrast(colours[text], colours["paper"]) >= 4.5, text
    # The border of what can be pressed, WCAG 2.2, 1.4.11.
    assert contrast(colours["edge"], colours["paper"]) >= 3


def test_the_page_on_style_says_what_the_tokens_are():
    said = STYLE.read_text(encoding="utf-8")
    light, dark = palette("light"), palette("dark")
    for name in (*TEXTS, "edge", "paper", "card", "accent-soft", "line", "mark"):
        row = re.search(rf"^\| `{name}` .*$", said, re.MULTILINE)
        assert row, name
        cells = [cell.strip() for cell in row[0].strip("|").split("|")]
        assert cells[2:4] == [f"`#{light[name]}`", f"`#{dark[name]}`"], name
        if name in (*TEXTS, "edge"):
            ratios = [f"{contrast(one[name], one['paper']):.1f}" for one in (light, dark)]
            assert cells[4:6] == ratios, (name, ratios)
    for name, value in re.findall(r"--(size-\d|unit): ([\d.]+rem)", tokens()):
        assert re.search(rf"`--{name}`[^\n]*{re.escape(value)}", said), name


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_number_on_the_deepest_shade_can_be_read(scheme):
    script = (PACKAGE / "web" / "static" / "attend" / "shades.js").read_text(encoding="utf-8")
    share = int(re.search(r"DARKEST = (\d+)", script)[1]) / 100
    colours = palette(scheme)
    channels = zip(*(bytes.fromhex(colours[name]) for name in ("accent", "paper")), strict=True)
    shade = bytes(round(share * a + (1 - share) * b) for a, b in channels).hex()
    assert contrast(colours["ink"], shade) >= 4.5

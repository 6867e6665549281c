"""Numbers that add up as they are shown: addends rounded to the decimals of their sum."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

# The decimals with which reasons are shown.
DECIMALS = 3
# The sum of the parts of a score differs from it by at most this share of their absolute sum.
TOLERANCE = 1e-4
# The reason that is the same for every hit.
AVERAGE_ITEM = "average item (subtracted)"


def adding_up(values: Sequence[float], total: float, decimals: int = DECIMALS) -> list[float]:
    """Round values so that the rounded values add up to the rounded total.

    If each value were rounded by itself, the shown numbers of a long list would miss the shown
    total by several units of the last decimal. Values that do not add up to the total are rounded
    each by itself: what is missing must be seen. `addingUp` in `web/static/words.js` is the same.

    >>> adding_up([0.0004, 0.0004, 0.0004], 0.0012)
    [0.001, 0.0, 0.0]
    >>> adding_up([0.5], 0.75)
    [0.5]
    """
    exact = [float(value) for value in values]
    if not is_sum(exact, total):
        return [round(value, decimals) for value in exact]
    return rounded_to(exact, total, decimals)


def reasons_adding_up(
    reasons: Sequence[tuple[str, float]], score: float, decimals: int = DECIMALS
) -> list[float]:
    """Round the values of reasons so that they add up to the rounded score. The average item, which
    is the same for every hit, is rounded by itself. `reasonsAddingUp` in `web/static/numbers.js` is
    the same.

    reasons: the text and the value of each.

    >>> reasons_adding_up([("rain", 4.3006), (AVERAGE_ITEM, -0.0003)], 4.3003)
    [4.3, 0.0]
    """
    values = [float(value) for _, value in reasons]
    texts = [text for text, _ in reasons]
    if AVERAGE_ITEM not in texts or len(values) == 1 or not is_sum(values, score):
        return adding_up(values, score, decimals)
    place = texts.index(AVERAGE_ITEM)
    alone = round(values.pop(place), decimals) + 0.0  # no −0
    shown = rounded_to(values, round(score, decimals) - alone, decimals)
    return [*shown[:place], alone, *shown[place:]]


def is_sum(values: Sequence[float], total: float) -> bool:
    """Return whether values add up to a total."""
    room = TOLERANCE * max(1.0, sum(map(abs, values)))
    return abs(sum(values) - total) <= room


def rounded_to(values: Sequence[float], total: float, decimals: int = DECIMALS) -> list[float]:
    """Round values so that they add up to the rounded total, whatever they add up to.

    Each value is rounded down, and the units that are then missing go to the values that lost most
    (the largest remainder method). Where the values add up to the total, no value is farther than
    one unit from what it was. `roundedTo` in `web/static/words.js` is the same.

    >>> rounded_to([3.394, 1.483, 0.5104], 5.388)
    [3.394, 1.483, 0.511]
    """
    exact = [float(value) for value in values]
    if not exact:
        return []
    units = [value * 10**decimals for value in exact]
    rounded = [floor(unit) for unit in units]
    wanted = round(round(total, decimals) * 10**decimals)
    # More than one unit each where the sum of the values misses the total by as much.
    each, more = divmod(wanted - sum(rounded), len(rounded))
    places = sorted(range(len(units)), key=lambda place: rounded[place] - units[place])
    for order, place in enumerate(places):
        rounded[place] += each
        if order < more:
            rounded[place] += 1
    return [round(unit / 10**decimals, decimals) for unit in rounded]


def signed(value: float, decimals: int = DECIMALS) -> str:
    """Return a number with its sign, and +0 for what rounds to zero.

    >>> signed(1.5), signed(-0.75), signed(-0.0001)
    ('+1.500', '-0.750', '+0.000')
    """
    return f"{round(value, decimals) + 0.0:+.{decimals}f}"

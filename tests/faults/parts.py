"""The parts of a full run, by name, and how many trials each has."""

from __future__ import annotations

from tests.faults import operations, world
from tests.faults.damage import damage
from tests.faults.kills import kill
from tests.faults.runner import Part


def prepared() -> None:
    """What processes share is made before they are forked."""
    for name in world.WORLDS:
        world.made(name)
    operations.cases()


PARTS = {
    part.name: part
    for part in (
        Part("kills", kill, 1200),
        Part("damage", damage, 2000),
    )
}

"""The parts of a full run, by name, and how many trials each has."""

from tests.faults import operations, world
from tests.faults.at_once import at_once
from tests.faults.damage import damage
from tests.faults.full_disk import full_disk
from tests.faults.fuzz.calls import fuzz_commands
from tests.faults.fuzz.documents import fuzz_documents
from tests.faults.fuzz.models import fuzz_models
from tests.faults.fuzz.stored import fuzz_stored
from tests.faults.fuzz.tables import fuzz_tables
from tests.faults.fuzz.where import fuzz_where
from tests.faults.kills import kill
from tests.faults.runner import Part


def prepared():
    """What processes share is made before they are forked."""
    for name in world.WORLDS:
        world.made(name)
    operations.cases()


PARTS = {
    part.name: part
    for part in (
        Part("kills", kill, 1300),
        Part("damage", damage, 2400),
        Part("full-disk", full_disk, 300),
        Part("at-once", at_once, 1, workers=1),
        Part("fuzz-where", fuzz_where, 400),
        Part("fuzz-tables", fuzz_tables, 250),
        Part("fuzz-documents", fuzz_documents, 120),
        Part("fuzz-stored", fuzz_stored, 300),
        Part("fuzz-models", fuzz_models, 80),
        Part("fuzz-commands", fuzz_commands, 240),
    )
}

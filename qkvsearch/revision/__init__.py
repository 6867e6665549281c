"""A workspace changed: items join or leave, segments merge, what is recorded is learned from."""

from qkvsearch.revision.forgetting import Forgotten, forget_user
from qkvsearch.revision.joining import Revision, add_items, remove_items
from qkvsearch.revision.learning import Learned, learn, learn_preferences
from qkvsearch.revision.merging import Merged, merge_segments
from qkvsearch.revision.repairing import Repaired, repair

__all__ = [
    "Forgotten", "Learned", "Merged", "Repaired", "Revision", "add_items", "forget_user", "learn",
    "learn_preferences", "merge_segments", "remove_items", "repair",
]  # fmt: skip

"""A workspace changed: items join or leave, segments merge, what is recorded is learned from."""

from qkvsearch.index.add import Revision, add_items, remove_items
from qkvsearch.index.erase import Forgotten, forget_user
from qkvsearch.index.learn import Learned, learn, learn_preferences
from qkvsearch.index.merge import Merged, merge_segments
from qkvsearch.index.repair import Repaired, repair

__all__ = [
    "Forgotten", "Learned", "Merged", "Repaired", "Revision", "add_items", "forget_user", "learn",
    "learn_preferences", "merge_segments", "remove_items", "repair",
]  # fmt: skip

"""That each head of a recommendation can be learned, stored and shown."""

from qkvsearch.heads.preference_heads import PREFERENCE_HEADS
from qkvsearch.heads.stored_preferences import PreferencesComponent
from qkvsearch.models.recommend_heads import HEADS


def test_every_head_that_is_learned_is_stored_in_the_same_order():
    assert [*PREFERENCE_HEADS] == [*HEADS]


def test_no_two_heads_have_an_array_of_the_same_name():
    names = [name for head in PREFERENCE_HEADS.values() for name in head.arrays]
    assert len(set(names)) == len(names)
    assert set(names) | {"item_counts", "n_liking"} == set(PreferencesComponent.arrays)

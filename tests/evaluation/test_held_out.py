"""Who is judged is answered as `recommend` answers them: the same scores, the same ranking."""

import numpy as np
import pytest

from qkvsearch.errors import DataError
from qkvsearch.evaluation.held_out import HeldOutUsers
from qkvsearch.evaluation.splits import Split, split
from qkvsearch.evaluation.systems import Fused
from qkvsearch.models.confidences import rating_confidences
from qkvsearch.models.estimators import ImplicitALS


@pytest.mark.parametrize("disliked", [False, True])
@pytest.mark.parametrize("n_components", [3, 8, 40])
def test_many_are_folded_in_as_each_alone(scattered, n_components, disliked):
    """Histories shorter and longer than d, and with items that count for nothing."""
    factors = ImplicitALS(n_components=n_components, random_state=0).fit(scattered).factors_
    scattered = scattered.copy()
    scattered.data[::3] *= not disliked
    together = factors.fold_in_many(scattered)
    for user, embedding in enumerate(together):
        span = slice(*scattered.indptr[user : user + 2])
        alone = factors.fold_in(scattered.indices[span], scattered.data[span])
        assert np.allclose(embedding, alone, rtol=1e-9, atol=1e-12)
    assert not together[3].any()  # met nothing
    assert factors.fold_in_many(scattered[:0]).shape == (0, n_components)
    scattered.data[7] = -1
    with pytest.raises(DataError, match="must be finite and at least 0"):
        factors.fold_in_many(scattered)


def test_rankings_are_those_of_the_engine(movies):
    log = movies.models.log()
    some = np.isin(log.users, [0, 7, 30])
    held_out = HeldOutUsers.of(Split(log, log, log.take(some)), movies.models.rating_scale)
    keys = movies.models.dense_keys(movies.models.main_head).vectors
    found = held_out.rankings(Fused(keys, random_state=0).fit(held_out.train), k=10)
    for user, ranked in zip(held_out.users, found, strict=True):
        answer = movies.recommend(user=log.user_ids[int(user)], k=10)
        assert [log.item_ids[item] for item in ranked] == [hit.id for hit in answer]


@pytest.mark.parametrize("protocol", ["random", "strong"])
def test_confidences_are_by_the_scale_of_what_is_learned_from(log, protocol):
    parts = split(log, protocol)
    held_out = HeldOutUsers.of(parts, (1, 5))
    weights = rating_confidences(parts.train.ratings, len(parts.train), (1, 5))
    assert (held_out.train != parts.train.matrix(weights)).nnz == 0
    assert (held_out.seen != parts.history.matrix()[held_out.users]).nnz == 0
    assert held_out.liked.shape == held_out.seen.shape == (len(held_out.users), 60)


def test_progress_counts_everyone_once(log):
    held_out = HeldOutUsers.of(split(log, "random"), (1, 5))
    done = []
    held_out.rankings(Fused(random_state=0).fit(held_out.train), 5, done.append)
    assert done[-1] == len(held_out.users)
    assert done == sorted(done)


def test_items_that_nobody_met_have_their_place_by_text(log):
    train = log.take(log.items != 7)
    held_out = HeldOutUsers.of(Split(train, train, log.take(log.items == 7)), (1, 5))
    keys = np.eye(3, dtype=np.float32)[np.arange(60) % 3]  # by taste
    plain = Fused(random_state=0).fit(held_out.train)
    with_texts = Fused(keys, random_state=0).fit(held_out.train)
    assert not plain.scores(held_out.liked)[:, 7].any()
    cold = with_texts.scores(held_out.liked)[:, 7]
    of_their_taste = held_out.users % 3 == 7 % 3
    assert of_their_taste.any()
    assert cold[of_their_taste].min() > cold[~of_their_taste].max(initial=-np.inf)
    others = np.arange(60) != 7
    assert np.array_equal(
        plain.scores(held_out.liked)[:, others], with_texts.scores(held_out.liked)[:, others]
    )

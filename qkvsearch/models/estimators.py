"""The collaborative models as scikit-learn's estimators.

A build uses the base classes, because importing scikit-learn takes longer than a small build.
"""

from qkvsearch.imports import leaving_no_trace
from qkvsearch.models.biased_mf import BiasedFactorization
from qkvsearch.models.implicit_als import AlternatingLeastSquares
from qkvsearch.models.item_neighbours import NeighbourRegression

with leaving_no_trace("sklearn.base"):
    from sklearn.base import BaseEstimator


class ImplicitALS(AlternatingLeastSquares, BaseEstimator):
    """Users and items as vectors; their dot product says how likely the user wants the item.

    Minimizes, with score s = u·y (Rendle, Krichene, Zhang and Koren 2022, "Revisiting the
    Performance of iALS on Item Recommendation Benchmarks", section 3, arXiv 2110.14037):

        Σ_observed c·(1 − s)² + α₀ Σ_all s² + Σ_users reg·(n_u + α₀·n_items)^nu·|u|²
                                            + Σ_items reg·(n_i + α₀·n_users)^nu·|y|²

    with n_u, n_i the lengths of their histories. Users and items without one are not in the sums,
    nor counted in n_users and n_items; their embedding is zero. It alternates between users and
    items: a few warm-started conjugate gradient steps for one side while the other is held fixed,
    preconditioned by the diagonal in the principal axes of the fixed side.

    "auto" depends on the data, with n̄ the mean length of the users' histories and c̄ the mean
    confidence of their pairs:

        α₀ = m·c̄·n̄ / n_items     reg = 0.2 / max(n̄, 10)^⅔ · (1 + m)·c̄ / (1 + m·c̄)
        m = min(10, n_items / n̄)

    A fixed α₀ that suits a dense data set fails on a sparse one. With this one, the unobserved
    pairs together count m times as much as the observed ones, and each counts at most as much as an
    observed one. Short histories need more regularization than long ones; below a mean of 10, reg
    stops growing, as it would shrink every embedding to zero. The last factor, 1 for c̄ = 1, keeps
    the penalty in proportion to the confidences whatever their scale.
    `benchmarks/defaults/collaborative_defaults.py` chose the constants.

    Parameters: n_components, the embedding size d; max_iter; alpha0 > 0, the weight of the pairs
    not observed; reg > 0; nu ≥ 0; cg_steps per half iteration; init_scale, the norm that embeddings
    start with; n_threads, one per core by default; random_state; callback(iteration, max_iter),
    called after each. The result is the same to the last bit for any n_threads.

    Fitted: user_embeddings_ (n_users, d) and item_embeddings_ (n_items, d), float32; alpha0_ and
    reg_ as used; user_ids_ and item_ids_, None after a matrix; factors_, the `ImplicitFactors` that
    answer queries.

    >>> from scipy.sparse import csr_matrix
    >>> watched = csr_matrix([[1, 0, 1, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 1, 0, 0]])
    >>> model = ImplicitALS(n_components=2, random_state=0).fit(watched)
    >>> scores = model.predict([3, 3], [3, 2])
    >>> bool(scores[0] > scores[1])
    True
    >>> model.fold_in([1]).shape
    (2,)
    """


class BiasedMF(BiasedFactorization, BaseEstimator):
    """Ratings as r̂ = μ + b_u + b_i + p_u·q_i: a mean, two biases, and how user and item fit.

    Minimizes, with r in standard deviations from the mean (Koren, Bell and Volinsky 2009, "Matrix
    Factorization Techniques for Recommender Systems", equations 4 and 5):

        Σ_observed (r − r̂)² + Σ_users reg·(n_u + damping)·|p_u|² + bias_reg·b_u²
                            + Σ_items reg·(n_i + damping)·|q_i|² + bias_reg·b_i²

    with n_u, n_i their numbers of ratings. The part that grows with n regularizes users and items
    with many ratings, the constant part those with few; a bias needs the constant part only.

    Stochastic gradient descent over blocks of users and items, in threads. The learning rate falls
    linearly to zero over the epochs, so that the embeddings converge without early stopping on
    held-out ratings. The result is the same to the last bit for any n_threads.

    Ratings outside the scale count as its ends, be it that of the interactions or the ends of what
    occurs (`tables.ratings.ends_of`), and none counts as more than 10 standard deviations from the
    mean. A descent that still diverges is started again with half the learning rate, up to six
    times; then `fit` raises `DataError`.

    Parameters: n_components, the embedding size d; max_iter, the epochs; learning_rate of the
    first; reg, damping and bias_reg > 0; init_scale, the standard deviation that embeddings start
    with; n_threads, one per core by default; random_state; callback(iteration, max_iter), called
    after each epoch, from 1 again after a restart. The defaults were
    chosen by `benchmarks/defaults/collaborative_defaults.py`.

    Fitted: mean_; user_biases_ (n_users,), item_biases_ (n_items,); user_embeddings_ (n_users, d),
    item_embeddings_ (n_items, d), float32, zero without ratings; rating_range_, the scale that
    predictions are clipped to; learning_rate_ as used; user_ids_ and item_ids_, None after a
    matrix; factors_, the `RatingFactors` that answer queries.

    >>> from scipy.sparse import csr_matrix
    >>> ratings = csr_matrix([[5, 5, 1], [4, 5, 2], [1, 2, 5]])
    >>> model = BiasedMF(n_components=2, random_state=0).fit(ratings)
    >>> bool(model.predict(0, 0)[0] > model.predict(0, 2)[0])
    True
    """


class ItemNeighbours(NeighbourRegression, BaseEstimator):
    """How much each item of a history speaks for an item, among the item's nearest neighbours.

    For each item j, N(j) are the n_neighbours items whose columns of the confidences X (n_users,
    n_items) have the highest cosine with that of j. With G = XᵀWX, the weights b of the neighbours
    solve

        (G_NN + λI + dropout·diag(G_NN)) b = G_Nj,    λ = reg · mean(c²),

    so that score(u, j) = Σ c_ui·b_ij predicts X. It is EASE^R (Steck 2019, "Embarrassingly shallow
    autoencoders for sparse data", equation 4) with weights for neighbours only, as fsSLIM has
    (Ning and Karypis 2011, "SLIM: Sparse linear methods for top-N recommender systems", section
    4.3), and with the penalty of Steck 2020, "Autoencoders that don't overfit towards the
    identity", equation 6, which is that of leaving out items at random. W is diagonal: a user with
    n items counts n^-user_exponent, times what makes the mean over all interactions 1, since two
    items of a long history tell less of each other than two of a short one (user normalization, as
    in Park and others 2025, "Why is normalization necessary for linear recommenders?"). Without an
    item of the history, the score changes by exactly that item's addend. Nothing is solved for a
    new user.

    Up to 8,192 items, co-occurrences are counted once for all pairs. With more, they are counted
    for each item, by a sample of its users where these have more than 4 million items in all.
    Users with more than 20,000 items are left out.

    Parameters: n_neighbours; reg > 0, dropout ≥ 0 and user_exponent from 0 to 1, chosen in
    `benchmarks/defaults/neighbour_defaults.py`; n_threads, one per core by default;
    callback(done, total), called with the number of items. The result is the same to the last bit
    for any n_threads.

    Fitted: weights_, the `NeighbourWeights` that answer queries; reg_ = λ as used; user_ids_ and
    item_ids_, None after a matrix.

    >>> from scipy.sparse import csr_matrix
    >>> watched = csr_matrix([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    >>> model = ItemNeighbours(reg=2, dropout=0, user_exponent=0).fit(watched)
    >>> model.scores([0]).tolist()
    [0.0, 0.5, 0.0]
    """

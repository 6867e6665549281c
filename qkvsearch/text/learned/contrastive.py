"""An encoder trained on the catalog: what two columns say of one item should be near."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from qkvsearch.errors import DataError
from qkvsearch.text.analysis import Analyzer
from qkvsearch.text.analyzed import AnalyzedTexts
from qkvsearch.text.learned.epochs import ContrastiveLearning
from qkvsearch.text.learned.svd import LearnedEncoder
from qkvsearch.text.text_encoder import item_keys

Columns = Sequence[Sequence[str]]


@dataclass(eq=False, repr=False)
class ContrastiveEncoder(ContrastiveLearning, LearnedEncoder):
    """Token vectors and weights trained to tell which texts belong to one item.

    Training starts from those of `init`, "ppmi" or "lsa". A batch holds two columns' texts of each
    of its items, a share `dropout` of their words dropped at random; the softmax over the batch's
    cosines / `temperature` should give each text its partner, both ways (InfoNCE; van den Oord et
    al. 2018, section 2.3). An item with one text is cut into two halves. Attention between the
    words before they are added up has been measured, and adds nothing: docs/ablation.md.

    How long to train is measured without a share `held_out` of the items, by how well each of their
    columns finds the item by its other columns. If no epoch, of at most `epochs`, finds them better
    than the start does, or the items are too few to tell, vectors and weights stay those of `init`.
    Where nothing is held out, all `epochs` are trained. Of a larger catalog a random sample of
    `max_items` is trained on, and the words that they have. `language`: as in `Analyzer`.

    Fitted: `encoder_`, a `TokenEncoder`; `embeddings_` (n_items, d) float32, rows of length 1;
    `n_epochs_`, the epochs chosen; `reciprocal_ranks_` (epochs tried + 1,), the held-out items'
    mean, the start's first. One seed gives the same bits, whatever the number of threads.

    >>> titles, tags = ["deep sea", "fast car"] * 60, ["ocean water", "road engine"] * 60
    >>> model = ContrastiveEncoder(n_components=2).fit([titles, tags])
    >>> sea, ocean, road = model.transform(["sea", "ocean", "road"])
    >>> bool(sea @ ocean > 0.9 > sea @ road)
    True
    """

    def fit(self, fields: Columns | Sequence[str], y: Any = None) -> ContrastiveEncoder:
        """fields: columns of texts, one text an item each; or the texts of a single column.

        Raises `DataError` for columns of different lengths, and for a parameter that cannot work.
        """
        columns = as_columns(fields)
        self.learn(AnalyzedTexts.of_columns(columns, Analyzer(self.language)))
        self.embeddings_ = item_keys(self.encoder_.encode_many, columns)
        return self


def as_columns(fields: Columns | Sequence[str]) -> list[list[str]]:
    """Columns of one length. Raises `DataError`."""
    columns = [[each] if isinstance(each, str) else list(each) for each in fields]
    if not columns or isinstance(fields[0], str):
        return [[text for column in columns for text in column]]
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise DataError(f"every column must have one text an item, got lengths {lengths}")
    return columns

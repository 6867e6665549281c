"""A bonus for items with a code of the query: whoever types a code means that item."""

from __future__ import annotations

import numpy as np

from qkvsearch.heads.first_head import FirstHead, QueryWording
from qkvsearch.heads.search_head import Asked, by_language


class CodeHead(FirstHead):
    """The items with a code of the query. It is added to other heads where the query has words
    beside the code.
    """

    name = "code"
    titles = by_language(en="Same code", zh="相同的编号")
    reason = "it has this code"
    # More than the second pass gives.
    lead = 5.0

    def items(self, asked: Asked, wording: QueryWording) -> np.ndarray | None:
        """Return the items with a code of the query, bool (n_items,).

        Return None where it has none, or nothing else. A small number, or an id that may be a word,
        is no code here.
        """
        codes = asked.query.codes
        scores = codes.head(asked.catalog) if codes.are_certain and codes.rest else None
        return None if scores is None else scores.scores > 0


CODE = CodeHead()

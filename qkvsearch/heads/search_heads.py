"""All heads of search: the list that search, reasons and the page read."""

from __future__ import annotations

from qkvsearch.heads.beginning_head import BEGINNING
from qkvsearch.heads.code_head import CODE
from qkvsearch.heads.dense_head import DENSE, SEMANTIC
from qkvsearch.heads.lexical_head import LEXICAL
from qkvsearch.heads.number_head import NUMBERS
from qkvsearch.heads.rule_heads import BOOSTS, PINS
from qkvsearch.heads.search_head import SearchHead
from qkvsearch.heads.taste_head import TASTE
from qkvsearch.heads.title_head import TITLE
from qkvsearch.heads.token_head import TOKENS

# In the order in which the page lists them, and in which the scores of text heads are added up.
HEADS: tuple[SearchHead, ...] = (
    LEXICAL,
    TOKENS,
    TASTE,
    BEGINNING,
    NUMBERS,
    CODE,
    TITLE,
    BOOSTS,
    PINS,
    *DENSE,
    SEMANTIC,
)

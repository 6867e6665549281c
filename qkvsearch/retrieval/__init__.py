"""Keys, heads, fusion, mask, top-k, softmax: queries answered with a ranking and its reasons."""

from qkvsearch.retrieval.bm25 import LexicalKeys, TermKeys
from qkvsearch.retrieval.dense_keys import DenseKeys
from qkvsearch.retrieval.fusion import Scores, fuse
from qkvsearch.retrieval.ranking import Hit, Ranking, rank
from qkvsearch.retrieval.reasons import Reason
from qkvsearch.retrieval.score_components import Components, ScoreComponent
from qkvsearch.retrieval.topk import top_k

__all__ = [
    "Components",
    "DenseKeys",
    "Hit",
    "LexicalKeys",
    "Ranking",
    "Reason",
    "ScoreComponent",
    "Scores",
    "TermKeys",
    "fuse",
    "rank",
    "top_k",
]

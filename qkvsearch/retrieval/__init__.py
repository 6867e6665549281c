"""Keys, heads, fusion, mask, top-k, softmax: queries answered with a ranking and its reasons."""

from qkvsearch.retrieval.fusion import Head, fuse, fuse_known, fuse_ranks
from qkvsearch.retrieval.keys import DenseKeys, LexicalKeys, TermKeys
from qkvsearch.retrieval.ranking import Hit, Ranking, rank
from qkvsearch.retrieval.reasons import Reason
from qkvsearch.retrieval.score_components import Part, Parts
from qkvsearch.retrieval.topk import top_k

__all__ = [
    "DenseKeys",
    "Head",
    "Hit",
    "LexicalKeys",
    "Part",
    "Parts",
    "Ranking",
    "Reason",
    "TermKeys",
    "fuse",
    "fuse_known",
    "fuse_ranks",
    "rank",
    "top_k",
]

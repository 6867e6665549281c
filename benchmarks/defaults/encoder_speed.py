"""How fast the pretrained encoders read: the figures that `text/encoders.py` estimates by.

TED talks' titles and tags, and paragraphs of XQuAD in English and in Chinese; the median of some
turns, after one that compiles. Transformers are run by what QKVSEARCH_RUNTIME says.

QKVSEARCH_DATA=data python benchmarks --only encoder_speed
(minutes; minilm and e5 where they are installed)
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.support.public_data import ted, xquad
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.timing import System, compare
from qkvsearch.text.encoders import SPEEDS, fitted_encoder
from qkvsearch.text.pretrained.fetch import find
from qkvsearch.text.pretrained.onnx_layers import runtime

TURNS = 5
# Texts a turn: enough that starting counts for little, few enough to wait for.
N_TEXTS = {"static": 2550, **dict.fromkeys(SPEEDS, 400)}
N_PARAGRAPHS = 40


def texts_to_read() -> Mapping[str, list[str]]:
    """Return the texts by what they are."""
    talks = ted("dev").items
    found = {column: talks[column].tolist() for column in ("title", "tags")}
    for language in ("en", "zh"):
        paragraphs = xquad(language).items["body"].tolist()
        found[f"paragraphs ({language})"] = paragraphs[:N_PARAGRAPHS]
    return found


def speeds() -> list[Row]:
    rows = []
    for kind, all_texts in texts_to_read().items():
        for choice, n in N_TEXTS.items():
            if find(choice) is None:
                continue
            texts = all_texts[:n]
            encoder = fitted_encoder(choice, [texts], choice)
            found = encoder.tokenizer.encode_batch_fast(texts)
            n_tokens = sum(len(encoding.ids) for encoding in found)
            n_bytes = sum(len(text.encode()) for text in texts)
            by = "" if choice == "static" else f" by {runtime()}"
            systems = [System(f"{choice}{by}, {len(texts):,} {kind}", encoder.encode_many)]
            (row,) = compare("texts read by encoders", systems, [texts], turns=TURNS,
                             blas_threads=None)  # fmt: skip
            assert row.seconds is not None
            measured = {
                "bytes / token": n_bytes / n_tokens,
                "tokens / s": n_tokens / row.seconds,
                "texts / s": len(texts) / row.seconds,
            }
            rows += [Row(row.task, row.system, name, value) for name, value in measured.items()]
    return rows


PARTS = {"ted": speeds}

if __name__ == "__main__":
    main(__file__, PARTS)

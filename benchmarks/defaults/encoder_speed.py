"""How fast the pretrained encoders read: the figures that `text/encoders.py` estimates by.

TED talks' titles and tags; the median of some turns, after one that compiles.

QKVSEARCH_DATA=data python benchmarks --only encoder_speed
(half a minute; minilm where it is installed)
"""

from __future__ import annotations

from benchmarks.support.public_data import ted
from benchmarks.support.results import Row
from benchmarks.support.script import main
from benchmarks.support.timing import System, compare
from qkvsearch.text.encoders import fitted_encoder
from qkvsearch.text.pretrained.fetch import find

TURNS = 5
# Texts a turn: enough that starting counts for little, few enough to wait for.
N_TEXTS = {"static": 2550, "minilm": 600}


def speeds() -> list[Row]:
    talks = ted("dev").items
    rows = []
    for choice, n in N_TEXTS.items():
        for column in ("title", "tags") if find(choice) is not None else ():
            texts = talks[column].tolist()[:n]
            encoder = fitted_encoder(choice, [texts], choice)
            found = encoder.tokenizer.encode_batch_fast(texts)
            n_tokens = sum(len(encoding.ids) for encoding in found)
            n_bytes = sum(len(text.encode()) for text in texts)
            systems = [System(f"{choice}, {n:,} of `{column}`", encoder.encode_many)]
            (row,) = compare("the texts of TED talks", systems, [texts], turns=TURNS,
                             blas_threads=None)  # fmt: skip
            assert row.seconds is not None
            measured = {
                "bytes / token": n_bytes / n_tokens,
                "tokens / s": n_tokens / row.seconds,
                "texts / s": n / row.seconds,
            }
            rows += [Row(row.task, row.system, name, value) for name, value in measured.items()]
    return rows


PARTS = {"ted": speeds}

if __name__ == "__main__":
    main(__file__, PARTS)

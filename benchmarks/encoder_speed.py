"""How fast the pretrained encoders read: the figures that `texts/choice.py` estimates by.

TED talks' titles and tags; the median of some turns, after one that compiles.

QKVSEARCH_DATA=data python benchmarks/encoder_speed.py    (half a minute; minilm where installed)
"""

from __future__ import annotations

import time
from statistics import median

import pandas as pd
from common import data_folder

from qkvsearch.texts.encoders import fitted_encoder
from qkvsearch.texts.pretrained.fetch import find

TURNS = 5
# Texts a turn: enough that starting counts for little, few enough to wait for.
N_TEXTS = {"static": 2550, "minilm": 600}


def main() -> None:
    talks = pd.read_csv(data_folder() / "ted" / "talks.csv")
    print("| encoder | column | texts | bytes / token | tokens / s | texts / s |")
    print("| --- | --- | --- | --- | --- | --- |")
    for choice, n in N_TEXTS.items():
        if find(choice) is None:
            continue
        for column in ("title", "tags"):
            texts = talks[column].fillna("").tolist()[:n]
            encoder = fitted_encoder(choice, [texts], choice)
            found = encoder.tokenizer.encode_batch_fast(texts)
            n_tokens = sum(len(encoding.ids) for encoding in found)
            n_bytes = sum(len(text.encode()) for text in texts)
            encoder.encode_many(texts)
            seconds = []
            for _ in range(TURNS):
                start = time.perf_counter()
                encoder.encode_many(texts)
                seconds.append(time.perf_counter() - start)
            took = median(seconds)
            figures = f"{n_bytes / n_tokens:.1f} | {n_tokens / took:,.0f} | {n / took:,.0f}"
            print(f"| {choice} | {column} | {n:,} | {figures} |", flush=True)


if __name__ == "__main__":
    main()

"""An exported site, decoded by NumPy from its files alone: what a page should compute."""

from __future__ import annotations

import json

import numpy as np

from qkvsearch.retrieval.fusion import moments


class Site:
    """Words, postings and keys of a site's folder."""

    def __init__(self, folder):
        self.folder = folder
        self.facts = json.loads((folder / "site.json").read_bytes())
        self.n_items = self.facts["n_items"]
        self.heads = self.facts["components"]
        self.words = self._words()
        numbers = self._data("words/1.bin")
        self.counts = np.frombuffer(numbers, "<u2", offset=4 * len(self.words))
        lookups = np.frombuffer(numbers, "<u4", len(self.words))
        self.lookup_of = dict(zip(self.words, lookups.tolist(), strict=True))
        self._shards = {}

    def _data(self, name):
        return (self.folder / self.facts["data"] / name).read_bytes()

    def _words(self):
        words, before = [], ""
        for line in self._data("words/0.bin").decode().split("\n"):
            before = before[: ord(line[0]) - 32] + line[1:]
            words.append(before)
        return words

    def found(self, lookup):
        """Items, weights, and by head the word's vector, float32, with its scale."""
        firsts = self.facts["postings"]
        number = int(np.searchsorted(firsts, lookup, side="right")) - 1
        begin = firsts[number]
        end = [*firsts, len(self.counts)][number + 1]
        content = self._data(f"postings/{number}.bin")
        offset = 4 + int(np.frombuffer(content, "<u4", 1)[0])
        json.loads(content[4:offset])
        scales = {}
        for head in self.heads:
            scales[head] = np.frombuffer(content, "<f4", end - begin, offset)
            offset += 4 * (end - begin)
        starts = np.concatenate([[0], np.cumsum(self.counts[begin:end].astype(int))])
        weights = np.frombuffer(content, "<f4", starts[-1], offset)
        items = np.frombuffer(content, "<u2", starts[-1], offset + 4 * starts[-1])
        offset += 8 * starts[-1]
        place, vectors = lookup - begin, {}
        for head, width in self.heads.items():
            codes = np.frombuffer(content, "i1", width * (end - begin), offset)
            offset += width * (end - begin)
            scale = float(scales[head][place])
            vectors[head] = (codes[width * place : width * (place + 1)] * np.float64(scale), scale)
        assert offset == len(content)
        span = slice(starts[place], starts[place + 1])
        return items[span], weights[span], vectors

    def keys(self, head):
        """Keys (n, d), float64, and their scales."""
        width, step = self.heads[head], self.facts["shard_keys"]
        keys, scales = [], []
        for number in range(-(-self.n_items // step)):
            n = min(step, self.n_items - number * step)
            content = self._data(f"{head}/{number}.bin")
            scales.append(np.frombuffer(content, "<f4", n))
            codes = np.frombuffer(content, "i1", offset=4 * n).reshape(n, width)
            keys.append(codes * scales[-1][:, None].astype(np.float64))
        return np.concatenate(keys), np.concatenate(scales)

    def scores(self, words):
        """By head the scores of all items, and the most that each may differ from the engine's."""
        lookups = [self.lookup_of[word] for word in words if word in self.lookup_of]
        found = [self.found(lookup) for lookup in lookups]
        heads = {}
        lexical = np.zeros(self.n_items)
        for items, weights, _ in found:
            lexical[items] += weights
        if found:
            heads["lexical"] = lexical, 1e-5 * max(1.0, lexical.max())
        for head in self.heads:
            times = {lookup: 1 + np.log(lookups.count(lookup)) for lookup in lookups}
            own = [(n, *self.found(lookup)[2][head]) for lookup, n in times.items()]
            total = sum((n * vector for n, vector, _ in own), np.zeros(self.heads[head]))
            length = np.linalg.norm(total)
            if length <= 1e-5:
                continue
            keys, scales = self.keys(head)
            # Half a step in each component, of the words and of the key.
            half = np.sqrt(self.heads[head]) / 2
            of_query = 2 * half * sum(n * scale for n, _, scale in own) / length
            of_key = half * float(scales.max())
            heads[head] = keys @ (total / length), of_query * (1 + of_key) + of_key
        return heads

    def fused(self, words):
        """The sum in standard deviations, (n_items,), and which items are no hits."""
        heads = {name: scores for name, (scores, _) in self.scores(words).items()}
        if not heads:
            return None
        weights = {name: self.facts["weights"][name] for name in heads}
        total, hits = np.zeros(self.n_items), np.zeros(self.n_items, bool)
        for name, scores in heads.items():
            mean, deviation = moments(scores)
            factor = weights[name] / sum(weights.values()) / deviation if deviation else 0
            total += factor * (scores - mean)
            hits |= scores > 0 if name == "lexical" else factor * (scores - mean) > 0
        return np.where(hits, total, -np.inf)

    def best(self, words, k=10):
        """Row numbers."""
        fused = self.fused(words)
        order = [] if fused is None else np.argsort(-fused, kind="stable")[:k]
        return [int(row) for row in order if np.isfinite(fused[row])]

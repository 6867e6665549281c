// What the server's answer says of words, heads and their mean: sums and nothing drawn.

/** Of an answer of `attend`: its maps by layer and head, and what is computed from them. A weight
 *  that is hidden is null; it counts as 0. */
export class Reading {
  constructor(answer) {
    this.answer = answer;
    this.words = answer.words;
    this.layers = answer.layers;
    this.heads = answer.heads;
    this.means = new Map();
    // Of each word, the pieces that the encoder reads.
    this.pieces = this.words.map((_, i) => answer.tokens.filter((__, n) => answer.owners[n] === i));
  }

  get hasLayers() {
    return this.layers > 0;
  }

  /** The weights of one head, a row a word. */
  of(layer, head) {
    return this.answer.maps[this.hasLayers ? layer * this.heads + head : 0].weights;
  }

  /** The mean of a layer's heads. */
  mean(layer) {
    if (!this.hasLayers) return this.of(0, 0);
    if (!this.means.has(layer)) {
      const maps = Array.from({ length: this.heads }, (_, head) => this.of(layer, head));
      const mean = (i, j) => maps.reduce((sum, map) => sum + map[i][j], 0) / maps.length;
      const found = this.words.map((_, i) =>
        this.words.map((_, j) => (maps[0][i][j] === null ? null : mean(i, j))),
      );
      this.means.set(layer, found);
    }
    return this.means.get(layer);
  }

  /** The head, as [layer, head], in which the word `i` gives most to the word `j`. */
  best(i, j) {
    let found = [0, 0];
    let most = -1;
    for (let layer = 0; layer < this.layers; layer += 1) {
      for (let head = 0; head < this.heads; head += 1) {
        const weight = this.of(layer, head)[i][j] ?? 0;
        if (weight > most) [found, most] = [[layer, head], weight];
      }
    }
    return found;
  }
}

/** Where a word of one sentence is in another: at the same place, else where it occurs first; −1. */
export function counterpart(words, i, others) {
  const folded = (word) => word.toLowerCase();
  if (others[i] !== undefined && folded(others[i]) === folded(words[i])) return i;
  return others.findIndex((word) => folded(word) === folded(words[i]));
}

/** Places of a row, the largest weight first. */
export const byWeight = (row) => row.map((_, j) => j).sort((a, b) => (row[b] ?? -1) - (row[a] ?? -1));

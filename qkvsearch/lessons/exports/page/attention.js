// Attention in the browser: softmax(Q·Kᵀ·scale/temperature + mask)·V, every step kept.
// Matrices are arrays of rows of numbers; the mask is true where a query may attend.
"use strict";

const attention = (() => {
  const dot = (a, b) => a.reduce((sum, entry, i) => sum + entry * b[i], 0);
  const transposed = (a) => a[0].map((_, j) => a.map((row) => row[j]));
  const product = (a, b) => {
    const columns = transposed(b);
    return a.map((row) => columns.map((column) => dot(row, column)));
  };
  const each = (a, change) => a.map((row, i) => row.map((entry, j) => change(entry, i, j)));

  // The last `padded` keys are padding; look-ahead hides every key after its query.
  const maskOf = (name, queries, keys, padded) =>
    Array.from({ length: queries }, (_, i) =>
      Array.from({ length: keys }, (_, j) => {
        const padding = (name === "padding" || name === "both") && j >= keys - padded;
        const ahead = (name === "look-ahead" || name === "both") && j > i;
        return !padding && !ahead;
      }),
    );

  const shared = (parts) => {
    const total = parts.reduce((sum, part) => sum + part, 0);
    return parts.map((part) => part / total);
  };

  // A row of scores to a row of weights; one with nothing to attend to gets zeros.
  const normalizers = {
    softmax: (row) => {
      const peak = Math.max(...row);
      if (peak === -Infinity) return row.map(() => 0);
      return shared(row.map((score) => Math.exp(score - peak)));
    },
    relu: (row) => {
      if (row.every((score) => score <= 0)) return row.map(() => 0);
      return shared(row.map((score) => (score <= 0 ? 0 : score)));
    },
    none: (row) => row.map((score) => (score === -Infinity ? 0 : score)),
  };

  // A weight of 0 takes nothing, not even of an infinite value.
  const mix = (weights, values) =>
    weights.map((row) =>
      values[0].map((_, j) =>
        row.reduce((sum, weight, i) => (weight === 0 ? sum : sum + weight * values[i][j]), 0),
      ),
    );

  // matrices: inputs, w_query, w_key, w_value, or queries, keys, values; the values may be absent,
  // then it ends with the scores. settings: mask, padded, scale, temperature, normalize.
  const steps = (matrices, settings) => {
    const from = (weight) => weight && product(matrices.inputs, weight);
    const queries = matrices.queries ?? from(matrices.w_query);
    const keys = matrices.keys ?? from(matrices.w_key);
    const values = matrices.values ?? from(matrices.w_value);
    const scores = product(queries, transposed(keys));
    if (!values) return { queries, keys, scores };

    // seen: what is hidden whatever the mask is, or nothing.
    const { seen } = settings;
    const byMask = maskOf(settings.mask, queries.length, keys.length, settings.padded);
    const visible = each(byMask, (isVisible, i, j) => isVisible && (!seen || seen[i][j]));
    const scale = settings.scale / settings.temperature;
    const scaled = each(scores, (score) => score * scale);
    const masked = each(scaled, (score, i, j) => (visible[i][j] ? score : -Infinity));
    const weights = masked.map(normalizers[settings.normalize]);
    const outputs = mix(weights, values);
    return { queries, keys, values, scores, scaled, masked, weights, outputs, visible };
  };

  return { steps };
})();

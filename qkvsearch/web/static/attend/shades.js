// How strong a colour a weight has.

// How much of the accent a full weight has: beyond this a text on it would be hard to read.
const DARKEST = 45;

/** The colour behind a text, by its weight. Its root, so that small weights can be seen. */
export function tint(weight) {
  const part = (DARKEST * Math.sqrt(weight)).toFixed(1);
  return `color-mix(in srgb, var(--accent) ${part}%, var(--paper))`;
}

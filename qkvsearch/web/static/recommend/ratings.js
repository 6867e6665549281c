// The ratings that the log knows.

let scale = null;

/** Of what `info` says: [lowest, highest], or null where nothing is rated. */
export function useScale(told) {
  scale = told ?? null;
}

/** Whether anything can be rated. */
export const isRated = () => scale !== null && scale[0] < scale[1];

export const lowest = () => scale[0];
export const highest = () => scale[1];

/** The ratings to choose from: whole and half ones, or ten of a wide scale, the highest first. */
export function choices() {
  const [low, high] = scale;
  const wide = high - low > 10;
  const step = wide ? (high - low) / 10 : 0.5;
  const found = [];
  for (let place = 0; low + place * step <= high + 1e-9; place += 1) found.push(rounded(low + place * step));
  return found.reverse();
}

const rounded = (value) => Math.round(value * 100) / 100;

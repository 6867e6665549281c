// How the map lies in its box, which has the map's own shape: on its side where that is the shape of the window.

// Neither too flat for words beside the groups, nor too high for a window.
const FLATTEST = 1.9;
const HIGHEST = 0.72;

// Where an item is on the map, beside the cells of its columns, one of which may be called "place".
export const PLACE = Symbol("place");

/** A turn by 90°, or none, of places on the map, and the shape of the box for it, width to height. x, y: of the items. A
 *  turn leaves all distances as they are. */
export function laid(x, y, isWide) {
  const reach = (values) => values.reduce((most, value) => Math.max(most, value), -Infinity) - values.reduce((least, value) => Math.min(least, value), Infinity);
  const [across, up] = [reach(x), reach(y)].map((value) => Math.max(value, 1e-3));
  const isTurned = across > up !== isWide;
  const shape = isTurned ? up / across : across / up;
  return {
    at: (px, py) => (isTurned ? [py, -px] : [px, py]),
    shape: Math.min(Math.max(shape, HIGHEST), FLATTEST),
  };
}

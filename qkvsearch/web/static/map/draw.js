// Two canvases: the points, drawn anew when the view changes, and over them lines, marks and names.
import { text } from "../dom.js";
import { PLACE } from "./plane.js";

const LONGEST_NAME = 32;
// On a canvas of a telephone's width, so many hits have names: more would cover the map.
const NAMES_ON_NARROW = 3;
// The radius of a ring around a hit, and of the star.
const RING = 6;
const STAR = 11;
// A name stands so far from its point; where there is no room, twice as far.
const BESIDE = 12;

/** A sprite as pixels to be set: of each its place, (dx, dy) from the upper left corner, and its
 *  colour. Setting some dozen pixels takes a fraction of what drawing a picture does. */
export function stamp(sprite) {
  const { width } = sprite;
  const pixels = new Uint32Array(sprite.getContext("2d").getImageData(0, 0, width, width).data.buffer);
  const filled = [...pixels.keys()].filter((place) => pixels[place] >>> 24 > 40);
  return {
    width,
    dx: Int32Array.from(filled, (place) => place % width),
    dy: Int32Array.from(filled, (place) => Math.floor(place / width)),
    colours: Uint32Array.from(filled, (place) => pixels[place]),
  };
}

/** All points, in their `order`. codes: of each its stamp, or −1 for the last. image: the size of
 *  the canvas, used again. */
export function drawPoints(canvas, image, view, points, order, codes, stamps) {
  const target = new Uint32Array(image.data.buffer);
  target.fill(0);
  const { width, height } = image;
  const scale = (view.scale * width) / view.width;
  const left = width / 2 - view.x * scale;
  const top = height / 2 + view.y * scale;
  const { x, y } = points;
  for (const i of order) {
    const code = codes ? codes[i] : -1;
    const one = stamps[code < 0 ? stamps.length - 1 : code];
    const px = Math.round(left + x[i] * scale - one.width / 2);
    const py = Math.round(top - y[i] * scale - one.width / 2);
    // A point at the very edge is left out rather than cut.
    if (px < 0 || py < 0 || px + one.width > width || py + one.width > height) continue;
    const corner = py * width + px;
    const { dx, dy, colours } = one;
    for (let j = 0; j < dx.length; j += 1) {
      const place = corner + dy[j] * width + dx[j];
      // The soft edge of one point does not cut into another.
      if (colours[j] >>> 24 >= target[place] >>> 24) target[place] = colours[j];
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** Points in the order in which they are drawn. */
export function drawingOrder(n, codes) {
  const order = new Int32Array(n);
  let place = 0;
  for (const isCoded of [false, true]) {
    for (let i = 0; i < n; i += 1) if ((codes ? codes[i] >= 0 : false) === isCoded) order[place++] = i;
  }
  return order;
}

// On a canvas of a telephone's width points are smaller, so that words have room between them.
const NARROW = 480;
const ON_NARROW = 0.8;

/** The size of a point in CSS pixels: smaller where there are many, larger when looked at closely. */
export const pointSize = (n, zoom, width) =>
  Math.min(16, (n > 5000 ? 4.5 : n > 1000 ? 6 : 10) * (width < NARROW ? ON_NARROW : 1) * Math.max(1, Math.sqrt(zoom) * 0.8));

/** 0, then numbers on both sides of it, `step` apart, up to `most`. */
const outwards = (step, most) => [0, ...Array.from({ length: most / step }, (_, i) => (i + 1) * step).flatMap((far) => [far, -far])];

// The labels of groups are tried in lines so far above and below the middle, and so far to its sides: shares of the
// narrower side of the canvas.
const PLACES = outwards(0.0125, 0.1875);
// A label a hundred pixels further away must cover so many points fewer.
const POINTS_FOR_DISTANCE = 0.5;
// Words that would cover more points than so many wait until one looks closer: none where points are large.
const MOST_COVERED = 6;
const LARGE = 8;
// So many pixels more are free between the words of a group and a point.
const GAP = 2;

/** `shown`: from (a place, or null), its name, lines to `hits` by weight; `marked`, an item's place;
 *  `hasCross`, whether the middle is marked. ink: colours by name. points: of the map, `size` pixels large. */
export function drawOver(canvas, view, shown, ink, points, size) {
  const ratio = canvas.width / view.width;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
  const { from, name, hits, labels, marked, hasCross } = shown;
  if (from) drawLines(context, view, from, hits, ink);
  if (hasCross) cross(context, view.width / 2, view.height / 2, 7, ink.ink);
  if (marked) ring(context, view.toScreen(...marked), 8, ink.ink, ink.paper);
  const covered = (box, gap = 0) => coveredBy(view, box, points, size / 2 + gap);
  if (from) drawNames(context, view, { from, name, hits }, ink, covered);
  else groupLabels(context, view, labels, ink, covered, [], size < LARGE ? MOST_COVERED : 0);
}

/** The star of what is placed, its name and those of its hits. */
function drawNames(context, view, { from, name, hits }, ink, covered) {
  const start = view.toScreen(...from);
  const ends = hits.map((hit) => view.toScreen(...hit[PLACE]));
  const taken = [around(start, STAR), ...ends.map((end) => around(end, RING))];
  const named = view.width < NARROW ? NAMES_ON_NARROW : hits.length;
  const names = [[start, name, true], ...ends.slice(0, named).map((end, i) => [end, hits[i].title, false])];
  star(context, start, ink);
  for (const [place, whole, isBold] of names) label(context, view, place, whole, isBold, ink, covered, taken, start, ends);
}

function drawLines(context, view, from, hits, ink) {
  const heaviest = Math.max(...hits.map((hit) => hit.weight), 1e-12);
  const start = view.toScreen(...from);
  context.strokeStyle = ink.accent;
  for (const hit of [...hits].reverse()) {
    const end = view.toScreen(...hit[PLACE]);
    const part = hit.weight / heaviest;
    context.globalAlpha = 0.45 + 0.5 * part;
    context.lineWidth = 0.8 + 5 * part;
    context.beginPath();
    context.moveTo(...start);
    context.lineTo(...end);
    context.stroke();
  }
  context.globalAlpha = 1;
  for (const hit of hits) ring(context, view.toScreen(...hit[PLACE]), RING, ink.accent, ink.paper);
}

function ring(context, [x, y], r, colour, paper) {
  for (const [width, stroke] of [[4, paper], [2, colour]]) {
    context.beginPath();
    context.arc(x, y, r, 0, 2 * Math.PI);
    context.lineWidth = width;
    context.strokeStyle = stroke;
    context.stroke();
  }
}

function cross(context, x, y, r, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x - r, y);
  context.lineTo(x + r, y);
  context.moveTo(x, y - r);
  context.lineTo(x, y + r);
  context.stroke();
}

function star(context, [x, y], ink) {
  context.beginPath();
  for (let corner = 0; corner < 10; corner += 1) {
    const r = corner % 2 ? 4.5 : STAR;
    const angle = (Math.PI * corner) / 5 - Math.PI / 2;
    context.lineTo(x + r * Math.cos(angle), y + r * Math.sin(angle));
  }
  context.closePath();
  context.fillStyle = ink.bad;
  context.strokeStyle = ink.paper;
  context.lineWidth = 3;
  context.stroke();
  context.fill();
}

const shortName = (whole) => {
  const letters = [...text(whole)];
  if (letters.length <= LONGEST_NAME) return letters.join("");
  const beginning = letters.slice(0, LONGEST_NAME).join("");
  return `${beginning.replace(/[,;:]?\s+\S*$/, "")}…`;
};

const fontOf = (ink, isBold) => `${isBold ? "600 " : ""}${ink.font}`;
const boxOf = (left, y, width) => [left - 3, y - 10, left + width + 3, y + 10];
const around = ([x, y], r) => [x - r, y - r, x + r, y + r];
const meets = (box, b) => box[0] < b[2] && b[0] < box[2] && box[1] < b[3] && b[1] < box[3];
const isOn = (view, [x, y]) => x >= 0 && y >= 0 && x <= view.width && y <= view.height;
const hasRoom = (view, box, taken) =>
  box[0] >= 0 && box[2] <= view.width && box[1] >= 0 && box[3] <= view.height && !taken.some((b) => meets(box, b));

/** A name beside its point, where it covers the fewest points and lines, and no other name, ring or star; nothing where
 *  there is no such room. What it covers is hidden, so that it stays legible. taken: boxes that it must not lie on,
 *  to which its own is added. covered: tells how many points a box covers. start, ends: of the lines. */
function label(context, view, [x, y], whole, isBold, ink, covered, taken, start, ends) {
  const name = shortName(whole);
  context.font = fontOf(ink, isBold);
  const width = context.measureText(name).width;
  if (!isOn(view, [x, y])) return;
  let best = null;
  for (const [far, [left, top]] of placesBeside(x, y, width).entries()) {
    const box = boxOf(left, top, width);
    if (!hasRoom(view, box, taken)) continue;
    const lines = ends.filter((end) => crosses(box, start, end)).length;
    const cost = covered(box) + lines + far / 20;
    if (!best || cost < best.cost) best = { cost, box, left, top };
  }
  if (!best) return;
  taken.push(best.box);
  plate(context, best.box, ink);
  write(context, name, best.left, best.top, ink);
}

/** Where a name may begin: right, left, below and above its point, and in the corners; then further away. */
const placesBeside = (x, y, width) =>
  [BESIDE, 2 * BESIDE].flatMap((far) => {
    const [right, left, middle, down] = [x + far, x - far - width, x - width / 2, far + 8];
    return [[right, y], [left, y], [middle, y + down], [middle, y - down], [right, y + far], [right, y - far], [left, y + far], [left, y - far]];
  });

/** Whether a line has a part in a box. */
function crosses([left, top, right, bottom], [x, y], [toX, toY]) {
  let [from, to] = [0, 1];
  for (const [start, way, low, high] of [[x, toX - x, left, right], [y, toY - y, top, bottom]]) {
    if (!way) {
      if (start < low || start > high) return false;
      continue;
    }
    const ends = [(low - start) / way, (high - start) / way];
    [from, to] = [Math.max(from, Math.min(...ends)), Math.min(to, Math.max(...ends))];
  }
  return from < to;
}

/** How many points, which reach so far around their places, a box covers or touches. */
function coveredBy(view, box, points, reach) {
  const [west, north] = view.toPlane(box[0] - reach, box[1] - reach);
  const [east, south] = view.toPlane(box[2] + reach, box[3] + reach);
  return points.countIn([west, south, east, north]);
}

function plate(context, [left, top, right, bottom], ink) {
  context.globalAlpha = 0.9;
  context.fillStyle = ink.paper;
  context.beginPath();
  context.roundRect(left, top, right - left, bottom - top, 4);
  context.fill();
  context.globalAlpha = 1;
}

/** How far a place is from a box. */
const distance = ([x, y], [left, top, right, bottom]) =>
  Math.hypot(Math.max(left - x, 0, x - right), Math.max(top - y, 0, y - bottom));

/** The words of each group that has its middle on the canvas. most: how many points they may cover. */
function groupLabels(context, view, labels, ink, covered, taken, most) {
  const middles = labels.map(({ place }) => view.toScreen(...place));
  labels.forEach(({ words }, i) => {
    const others = middles.filter((_, place) => place !== i);
    if (isOn(view, middles[i])) groupLabel(context, view, words, middles[i], others, ink, covered, taken, most);
  });
}

/** The words of a group where they cover the fewest points, nearer to its middle than to that of any other group;
 *  nothing where there is no such room. What they cover is hidden, so that no point touches a letter. */
function groupLabel(context, view, words, middle, others, ink, covered, taken, most) {
  const [x, y] = middle;
  const name = shortName(words);
  context.font = fontOf(ink, true);
  const width = context.measureText(name).width;
  let best = null;
  const side = Math.min(view.width, view.height);
  for (const line of PLACES.map((share) => share * side)) {
    for (const aside of PLACES.map((share) => share * side)) {
      const left = x + aside - width / 2;
      const box = boxOf(left, y + line, width);
      const own = distance(middle, box);
      if (!hasRoom(view, box, taken) || others.some((other) => distance(other, box) < own)) continue;
      const away = Math.hypot(line, left + width / 2 - x) / 100;
      const n = covered(box, GAP);
      const cost = n + POINTS_FOR_DISTANCE * away;
      if (n <= most && (!best || cost < best.cost)) best = { n, cost, box, left, top: y + line };
    }
  }
  if (!best) return;
  taken.push(best.box);
  if (best.n) plate(context, best.box, ink);
  write(context, name, best.left, best.top, ink);
}

function write(context, name, left, y, ink) {
  context.textBaseline = "middle";
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeStyle = ink.paper;
  context.strokeText(name, left, y);
  context.fillStyle = ink.ink;
  context.fillText(name, left, y);
}

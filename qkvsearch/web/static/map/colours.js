// Colours that most eyes tell apart, each with a shape of its own; shades for what has an order.

// On light and on dark paper. Of any two the colours differ for trichromats, and for people who lack one kind of cones
// (Machado et al. 2009); tests/web/test_map_colours.py measures by how much.
const VALUES = {
  light: ["#1100ff", "#ff4400", "#229911", "#aa00bb", "#1199dd", "#884400", "#bb7788", "#006655", "#8866ff", "#770033", "#885588", "#224466", "#550099"],
  dark: ["#55cc77", "#cc1111", "#bbee11", "#aa00ff", "#77eeff", "#aa8833", "#eeffaa", "#117755", "#7755bb", "#ff9900", "#ccaacc", "#559999", "#aa77ff"],
};
const SHAPES = [
  "circle", "square", "triangle", "diamond", "cross", "wedge", "ring", "plus", "star", "frame", "lozenge", "hexagon", "bars",
];
// Viridis, without the end that is as light, or as dark, as the paper.
const SHADES = {
  light: ["#440154", "#46307e", "#3b528b", "#2c728e", "#21918c", "#1fa088"],
  dark: ["#35718f", "#26828e", "#1f9e89", "#4ac16d", "#a0da39", "#fde725"],
};
const REST = { light: "#74777f", dark: "#8d9098" };

/** "light" or "dark": the scheme that the page is shown in. */
export const scheme = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

/** Of each code a small canvas with its mark, at `size` CSS pixels and `ratio` device pixels for
 *  each; the last is for what has no code. */
export function sprites(kind, n, size, ratio) {
  const paper = scheme();
  const made = Array.from({ length: n }, (_, code) => {
    if (kind === "ranges") return sprite(shade(SHADES[paper], code, n), "circle", size, ratio);
    return sprite(VALUES[paper][code % VALUES[paper].length], SHAPES[code % SHAPES.length], size, ratio);
  });
  return [...made, sprite(REST[paper], "circle", size * (n ? 0.7 : 0.85), ratio)];
}

const shade = (shades, code, n) => shades[n < 2 ? 0 : Math.round((code * (shades.length - 1)) / (n - 1))];

function sprite(colour, shape, size, ratio) {
  const canvas = document.createElement("canvas");
  const pixels = Math.ceil(size * ratio) + 2;
  canvas.width = canvas.height = pixels;
  const context = canvas.getContext("2d");
  context.translate(pixels / 2, pixels / 2);
  context.fillStyle = context.strokeStyle = colour;
  outline(context, shape, (size * ratio) / 2);
  return canvas;
}

const corner = (place, n, r, turn = -Math.PI / 2) => {
  const angle = turn + (2 * Math.PI * place) / n;
  return [r * Math.cos(angle), r * Math.sin(angle)];
};
const regular = (n, turn) => Array.from({ length: n }, (_, place) => corner(place, n, 1, turn));
// Corners of the shapes that have some, within a circle of radius 1.
const CORNERS = {
  triangle: [[0, -1], [1, 0.8], [-1, 0.8]],
  wedge: [[0, 1], [1, -0.8], [-1, -0.8]],
  diamond: regular(4),
  hexagon: regular(6),
  star: Array.from({ length: 10 }, (_, place) => corner(place, 10, place % 2 ? 0.45 : 1.1)),
  square: [[-0.8, -0.8], [0.8, -0.8], [0.8, 0.8], [-0.8, 0.8]],
};
// Outlines of a shape, and lines: from, to.
const HOLLOW = { frame: "square", lozenge: "diamond" };
const STROKES = {
  cross: [[[-0.8, -0.8], [0.8, 0.8]], [[-0.8, 0.8], [0.8, -0.8]]],
  plus: [[[-1, 0], [1, 0]], [[0, -1], [0, 1]]],
  bars: [[[-0.9, -0.55], [0.9, -0.55]], [[-0.9, 0.55], [0.9, 0.55]]],
};

/** A shape of radius `r` around the middle. */
function outline(context, shape, r) {
  context.beginPath();
  context.lineWidth = r * 0.55;
  if (STROKES[shape]) {
    for (const [from, to] of STROKES[shape]) {
      context.moveTo(...from.map((value) => value * r));
      context.lineTo(...to.map((value) => value * r));
    }
    context.stroke();
    return;
  }
  if (shape === "circle") context.arc(0, 0, r * 0.9, 0, 2 * Math.PI);
  else if (shape === "ring") context.arc(0, 0, r * 0.7, 0, 2 * Math.PI);
  else {
    const within = HOLLOW[shape] ? 0.8 : 1;
    const corners = CORNERS[HOLLOW[shape] ?? shape];
    corners.forEach(([x, y], place) => (place ? context.lineTo(x * r * within, y * r * within) : context.moveTo(x * r * within, y * r * within)));
    context.closePath();
  }
  if (shape === "ring" || HOLLOW[shape]) context.stroke();
  else context.fill();
}

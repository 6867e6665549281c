// Colours that most eyes tell apart, each with a shape of its own; shades for what has an order.

// Okabe and Ito (2008), Color Universal Design, without black and yellow.
const VALUES = ["#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7"];
const SHAPES = ["circle", "square", "triangle", "diamond", "wedge", "cross"];
// Viridis, from dark to light and the other way round, away from the paper's own end.
const SHADES = ["#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#d8c61f"];
const REST = "#8d9098";

/** Of each code a small canvas with its mark, at `size` CSS pixels and `ratio` device pixels for
 *  each; the last is for what has no code. */
export function sprites(kind, n, size, ratio) {
  const made = Array.from({ length: n }, (_, code) => {
    if (kind === "ranges") return sprite(shade(code, n), "circle", size, ratio);
    return sprite(VALUES[code % VALUES.length], SHAPES[code % SHAPES.length], size, ratio);
  });
  return [...made, sprite(REST, "circle", size * (n ? 0.7 : 0.85), ratio)];
}

const shade = (code, n) => SHADES[n < 2 ? 0 : Math.round((code * (SHADES.length - 1)) / (n - 1))];

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

/** A shape of radius `r` around the middle. */
function outline(context, shape, r) {
  context.beginPath();
  if (shape === "circle") context.arc(0, 0, r * 0.9, 0, 2 * Math.PI);
  else if (shape === "square") context.rect(-r * 0.8, -r * 0.8, r * 1.6, r * 1.6);
  else if (shape === "cross") {
    context.lineWidth = r * 0.6;
    for (const side of [-1, 1]) {
      context.moveTo(-r * 0.8, -r * 0.8 * side);
      context.lineTo(r * 0.8, r * 0.8 * side);
    }
    context.stroke();
    return;
  } else {
    const corners = {
      triangle: [[0, -1], [1, 0.8], [-1, 0.8]],
      wedge: [[0, 1], [1, -0.8], [-1, -0.8]],
      diamond: [[0, -1], [1, 0], [0, 1], [-1, 0]],
    }[shape];
    corners.forEach(([x, y], place) => (place ? context.lineTo(x * r, y * r) : context.moveTo(x * r, y * r)));
  }
  context.fill();
}

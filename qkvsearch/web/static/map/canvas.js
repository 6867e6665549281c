// The map on the page: drawn once a frame at most, moved by mouse, touch, wheel and keys.
import { byId } from "../dom.js";
import { scheme, sprites } from "./colours.js";
import { drawingOrder, drawOver, drawPoints, pointSize, stamp } from "./draw.js";
import { View } from "./view.js";

const STEP = 60;
const NEAR = 14;
const CLICK = 5;
// An item stays in sight within so much of the canvas, from its middle.
const IN_SIGHT = 0.9;

/** The map. `onHover(i, px, py)`: the mouse is on an item, −1 for none; `onPick(i)`: an item is
 *  chosen; `onMove()`: the view has changed. */
export class MapCanvas {
  constructor({ onHover, onPick, onMove }) {
    Object.assign(this, { onHover, onPick, onMove });
    [this.under, this.over] = [byId("points"), byId("over")];
    this.view = new View();
    this.shown = { from: null, name: "", hits: [], labels: [], marked: null, hasCross: false };
    this.pointers = new Map();
    this.wanted = 0;
    new ResizeObserver(() => this.resize()).observe(byId("map"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.stamps = null;
      this.redraw();
    });
    this.listen();
  }

  /** Other points, and their colours; the view stays unless it is to show all of them. */
  load(points, colour, showAll, labels) {
    this.points = points;
    this.shown.labels = labels;
    this.codes = colour?.codes ?? null;
    this.kind = colour?.kind ?? "values";
    this.n = colour?.labels.length ?? 0;
    this.order = drawingOrder(points.n, this.codes);
    this.stamps = null;
    if (showAll) this.view.fit(points.bounds);
    this.redraw();
  }

  /** Other lines and marks. */
  mark(shown) {
    Object.assign(this.shown, shown);
    this.frame();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = byId("map");
    if (!width || !height || (width === this.view.width && height === this.view.height && this.image)) return;
    Object.assign(this.view, { width, height });
    for (const canvas of [this.under, this.over]) {
      canvas.width = Math.round(width * devicePixelRatio);
      canvas.height = Math.round(height * devicePixelRatio);
    }
    this.image = new ImageData(this.under.width, this.under.height);
    this.stamps = null;
    this.redraw();
  }

  redraw() {
    this.isStale = true;
    this.frame();
  }

  frame() {
    if (this.wanted || !this.points || !this.image) return;
    this.wanted = requestAnimationFrame(() => {
      this.wanted = 0;
      if (this.isStale) this.drawUnder();
      drawOver(this.over, this.view, this.shown, inks(), this.points, this.pointSize());
    });
  }

  drawUnder() {
    this.isStale = false;
    const size = this.pointSize();
    if (!this.stamps || this.size !== size) {
      const ratio = this.under.width / this.view.width;
      this.stamps = sprites(this.kind, this.n, size, ratio).map(stamp);
      this.size = size;
    }
    const { under, image, view, points, order, codes, stamps } = this;
    drawPoints(under, image, view, points, order, codes, stamps);
  }

  pointSize() {
    return pointSize(this.points.n, this.view.zoom, this.view.width);
  }

  /** The item at a place of the canvas, or −1. */
  at(px, py) {
    const [x, y] = this.view.toPlane(px, py);
    return this.points ? this.points.nearest(x, y, NEAR / this.view.scale) : -1;
  }

  /** The items nearest to the middle. */
  middle(k) {
    return this.points.nearestOf(this.view.x, this.view.y, k);
  }

  moved() {
    this.redraw();
    this.onMove();
  }

  zoom(factor, px, py) {
    const [x, y] = px === undefined ? this.kept(factor) : [px, py];
    this.view.zoomAt(factor, x, y);
    this.moved();
  }

  /** What stays in its place: the middle, or the item nearest to it where that would otherwise leave the canvas. */
  kept(factor) {
    const { width, height } = this.view;
    if (!this.points) return [width / 2, height / 2];
    const [row] = this.middle(1);
    const [x, y] = this.view.toScreen(this.points.x[row], this.points.y[row]);
    const leaves = (from, size) => 2 * factor * Math.abs(from - size / 2) > IN_SIGHT * size;
    return leaves(x, width) || leaves(y, height) ? [x, y] : [width / 2, height / 2];
  }

  showAll() {
    if (!this.points) return;
    this.view.fit(this.points.bounds);
    this.moved();
  }

  // --- mouse, touch, keys ---

  listen() {
    const { over } = this;
    over.addEventListener("pointerdown", (event) => this.down(event));
    over.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) over.addEventListener(name, (event) => this.up(event));
    over.addEventListener("pointerleave", () => this.onHover(-1));
    over.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    over.addEventListener("keydown", (event) => this.key(event));
    for (const name of ["focus", "blur"]) over.addEventListener(name, () => this.focused());
  }

  /** Whether the keyboard, and no mouse, is on the map. */
  hasKeyboard() {
    return document.activeElement === this.over && this.over.matches(":focus-visible");
  }

  focused() {
    this.mark({ hasCross: this.hasKeyboard() });
    this.onMove();
  }

  down(event) {
    this.over.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    if (this.pointers.size === 1) this.travelled = 0;
  }

  move(event) {
    const now = [event.offsetX, event.offsetY];
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.onHover(this.at(...now), ...now);
      return;
    }
    const [other] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    this.pointers.set(event.pointerId, now);
    this.travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (other) {
      const apart = (place) => Math.max(Math.hypot(place[0] - other[0], place[1] - other[1]), 1);
      this.zoom(apart(now) / apart(before), ...other);
    } else if (this.travelled > CLICK) {
      this.view.pan(now[0] - before[0], now[1] - before[1]);
      this.onHover(-1);
      this.moved();
    }
  }

  up(event) {
    const isClick = this.pointers.size === 1 && this.travelled <= CLICK && event.type === "pointerup";
    this.pointers.delete(event.pointerId);
    if (!isClick) return;
    const found = this.at(event.offsetX, event.offsetY);
    if (found >= 0) this.onPick(found);
  }

  wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    const factor = Math.exp(-Math.max(-240, Math.min(240, event.deltaY * lines)) / 400);
    this.zoom(factor, event.offsetX, event.offsetY);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.points) return;
    const moves = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
    if (moves[event.key]) {
      this.view.pan(...moves[event.key]);
      this.moved();
    } else if (event.key === "Enter" || event.key === " ") this.onPick(this.middle(1)[0]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

let known = null;

/** The page's colours and type, as a canvas takes them: asked once for each scheme and size. */
function inks() {
  const [paper, size] = [scheme(), getComputedStyle(byId("map")).fontSize];
  if (known?.scheme !== paper || known.size !== size) {
    const style = getComputedStyle(document.body);
    const probe = document.createElement("i");
    document.body.append(probe);
    const of = (name) => {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    };
    known = { scheme: paper, size, font: `${size} ${style.fontFamily}`, ink: of("ink"), paper: of("paper"), accent: of("accent"), bad: of("bad") };
    probe.remove();
  }
  return known;
}

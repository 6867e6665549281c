// Where the plane lies under the canvas: moved, made larger, and kept in sight.

const LARGEST = 400;
const SMALLEST = 0.6;
// Part of the canvas that the whole map takes.
const FILLS = 0.94;

/** The plane's [−1, 1] × [−1, 1] on a canvas of `width` × `height` CSS pixels; y goes up. */
export class View {
  constructor() {
    Object.assign(this, { x: 0, y: 0, zoom: 1, width: 1, height: 1 });
  }

  /** The part of the plane that holds `bounds`, [least x, least y, most x, most y], at zoom 1. */
  fit(bounds) {
    this.bounds = bounds;
    this.x = (bounds[0] + bounds[2]) / 2;
    this.y = (bounds[1] + bounds[3]) / 2;
    this.zoom = 1;
  }

  /** CSS pixels for a unit of the plane. */
  get scale() {
    const [left, low, right, high] = this.bounds ?? [-1, -1, 1, 1];
    const wide = Math.max(right - left, 1e-3);
    const tall = Math.max(high - low, 1e-3);
    return FILLS * this.zoom * Math.min(this.width / wide, this.height / tall);
  }

  toScreen(x, y) {
    return [this.width / 2 + (x - this.x) * this.scale, this.height / 2 - (y - this.y) * this.scale];
  }

  toPlane(px, py) {
    return [this.x + (px - this.width / 2) / this.scale, this.y - (py - this.height / 2) / this.scale];
  }

  /** By CSS pixels; the middle stays within the map. */
  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y += dy / this.scale;
    this.keepInSight();
  }

  /** Larger by `factor`, the point under (px, py) staying where it is. */
  zoomAt(factor, px = this.width / 2, py = this.height / 2) {
    const [x, y] = this.toPlane(px, py);
    this.zoom = Math.min(Math.max(this.zoom * factor, SMALLEST), LARGEST);
    const [nowX, nowY] = this.toPlane(px, py);
    this.x += x - nowX;
    this.y += y - nowY;
    this.keepInSight();
  }

  keepInSight() {
    const [left, low, right, high] = this.bounds ?? [-1, -1, 1, 1];
    this.x = Math.min(Math.max(this.x, left), right);
    this.y = Math.min(Math.max(this.y, low), high);
  }
}

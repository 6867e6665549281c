// Points of the plane, and which of them is near, by a grid of cells.

/** x, y: Float32Array (n). Cells hold some two points each on average. */
export class Points {
  constructor(x, y) {
    this.x = Float32Array.from(x);
    this.y = Float32Array.from(y);
    this.n = this.x.length;
    this.bounds = [least(this.x), least(this.y), most(this.x), most(this.y)];
    this.side = Math.max(1, Math.ceil(Math.sqrt(this.n / 2)));
    this.fill();
  }

  /** Points by their cell: `order` from `starts[cell]` to `starts[cell + 1]`. */
  fill() {
    const cells = new Int32Array(this.n);
    this.starts = new Int32Array(this.side * this.side + 1);
    for (let i = 0; i < this.n; i += 1) {
      cells[i] = this.row(this.y[i]) * this.side + this.column(this.x[i]);
      this.starts[cells[i] + 1] += 1;
    }
    for (let cell = 0; cell < this.side * this.side; cell += 1) this.starts[cell + 1] += this.starts[cell];
    const next = this.starts.slice();
    this.order = new Int32Array(this.n);
    for (let i = 0; i < this.n; i += 1) this.order[next[cells[i]]++] = i;
  }

  column(x) {
    return within(((x - this.bounds[0]) / (this.bounds[2] - this.bounds[0] || 1)) * this.side, this.side);
  }

  row(y) {
    return within(((y - this.bounds[1]) / (this.bounds[3] - this.bounds[1] || 1)) * this.side, this.side);
  }

  /** The points of the box around (x, y), as far as `far` to each side, told one by one. */
  within(x, y, far, tell) {
    this.inCells([x - far, y - far, x + far, y + far], tell);
  }

  /** How many points are in a box. */
  countIn([left, bottom, right, top]) {
    let n = 0;
    this.inCells([left, bottom, right, top], (i) => {
      const [x, y] = [this.x[i], this.y[i]];
      if (x >= left && x <= right && y >= bottom && y <= top) n += 1;
    });
    return n;
  }

  /** The points of the cells that a box touches, told one by one. */
  inCells([left, bottom, right, top], tell) {
    const [first, last] = [this.column(left), this.column(right)];
    for (let row = this.row(bottom); row <= this.row(top); row += 1) {
      const from = this.starts[row * this.side + first];
      const to = this.starts[row * this.side + last + 1];
      for (let place = from; place < to; place += 1) tell(this.order[place]);
    }
  }

  /** The nearest as far as `far`, or −1. */
  nearest(x, y, far) {
    let found = -1;
    let best = far * far;
    this.within(x, y, far, (i) => {
      const d = this.squared(i, x, y);
      if (d <= best) [best, found] = [d, i];
    });
    return found;
  }

  /** The `k` nearest, the nearest first. */
  nearestOf(x, y, k) {
    const all = 2 * Math.max(this.bounds[2] - this.bounds[0], this.bounds[3] - this.bounds[1], 1);
    for (let far = all / this.side; ; far *= 2) {
      const found = [];
      this.within(x, y, far, (i) => {
        if (this.squared(i, x, y) <= far * far) found.push(i);
      });
      if (found.length >= Math.min(k, this.n) || far > 2 * all) {
        return found.sort((a, b) => this.squared(a, x, y) - this.squared(b, x, y)).slice(0, k);
      }
    }
  }

  squared(i, x, y) {
    return (this.x[i] - x) ** 2 + (this.y[i] - y) ** 2;
  }
}

const within = (place, n) => Math.min(Math.max(Math.floor(place), 0), n - 1);
const least = (numbers) => numbers.reduce((a, b) => Math.min(a, b), Infinity);
const most = (numbers) => numbers.reduce((a, b) => Math.max(a, b), -Infinity);

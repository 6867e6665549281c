// Arrows in a plane: a tip is dragged, or moved by the arrow keys, and all that follows with it.

drawings.arrows = (figure, say) => {
  const given = JSON.parse(figure.dataset.numbers);
  const { labels, axes, against, coefficients, dots, box } = given;
  const [low, high] = box;
  const first = given.vectors.map((vector) => vector.map(numbers.held));
  let vectors = structuredClone(first);
  let chosen = given.chosen;
  let isMoved = false;
  const svg = figure.querySelector("svg");
  const telling = startTelling(figure);
  const names = coefficients ? [...labels, given.total] : labels;

  // --- what is computed ---

  const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
  const cross = (a, b) => a[0] * b[1] - a[1] * b[0];
  const degrees = (a, b) =>
    dot(a, a) && dot(b, b) ? (Math.atan2(Math.abs(cross(a, b)), dot(a, b)) * 180) / Math.PI : NaN;
  const all = () => {
    if (!coefficients) return vectors;
    const total = [0, 1].map((k) => vectors.reduce((sum, vector, i) => sum + coefficients[i] * vector[k], 0));
    return [...vectors, total];
  };
  const nearest = (total) => {
    const cosines = dots.map((place) => dot(place, total) / (Math.hypot(...place) || 1));
    return coefficients && dots.length ? cosines.indexOf(Math.max(...cosines)) : -1;
  };

  // --- what is drawn: the places of lessons/drawings/arrows.py ---

  const WIDE = 360;
  const EDGE = 14;
  const HEAD = 10;
  const FAR = 13;
  const APART = 26;
  const ARC = 30;
  const unit = (WIDE - 2 * EDGE) / (high - low);
  const at = ([x, y]) => [EDGE + (x - low) * unit, WIDE - EDGE - (y - low) * unit];
  const origin = at([0, 0]);
  const place = (line, [x1, y1], [x2, y2]) => {
    for (const [name, value] of Object.entries({ x1, y1, x2, y2 })) line.setAttribute(name, value);
  };

  // Where the numbers on the axes are: their baseline is 4 below the middle.
  const ticks = [...svg.querySelectorAll(".tick")].map((tick) => [tick.x.baseVal[0].value, tick.y.baseVal[0].value - 4]);
  // On which side of the arrow that others may cover there is more room for its name.
  const sideOf = (found) => {
    const [x, y] = at(found[against]);
    const length = Math.hypot(x - origin[0], y - origin[1]) || 1;
    const [dx, dy] = [(x - origin[0]) / length, (y - origin[1]) / length];
    // Names of others are beyond their tips.
    const others = found.filter((_, i) => i !== against).map(at).map(([a, b]) => [a + FAR * dx, b + FAR * dy]);
    const taken = [...others, ...ticks];
    const room = (side) =>
      Math.min(...taken.map(([a, b]) => Math.hypot(x - side * FAR * dy - a, y + side * FAR * dx - b)));
    return room(1) >= room(-1) ? 1 : -1;
  };
  const drawArrow = (group, vector, beside) => {
    const [line, head, label] = group.children;
    const [x, y] = at(vector);
    const length = Math.hypot(x - origin[0], y - origin[1]) || 1;
    const dx = (x - origin[0]) / length;
    const dy = (y - origin[1]) / length;
    const back = [x - HEAD * dx, y - HEAD * dy];
    place(line, origin, back);
    const corners = [1, -1].map((s) => [back[0] + s * 0.4 * HEAD * dy, back[1] - s * 0.4 * HEAD * dx]);
    head.setAttribute("points", [[x, y], ...corners].map((corner) => corner.join(",")).join(" "));
    label.setAttribute("x", x + (beside ? -beside * FAR * dy : FAR * dx));
    label.setAttribute("y", y + (beside ? beside * FAR * dx : FAR * dy) + 4);
  };

  const drawBeside = (a, b) => {
    const along = dot(a, b) / (dot(a, a) || 1);
    const shadow = at(a.map((entry) => entry * along));
    place(svg.querySelector(".drop"), at(b), shadow);
    place(svg.querySelector(".shadow"), origin, shadow);
    const start = Math.atan2(a[1], a[0]);
    const turn = Math.atan2(cross(a, b), dot(a, b));
    const [from, to] = [start, start + turn].map((angle) =>
      [origin[0] + ARC * Math.cos(angle), origin[1] - ARC * Math.sin(angle)].join(" "),
    );
    svg.querySelector(".arc").setAttribute("d", `M${from}A${ARC} ${ARC} 0 0 ${turn < 0 ? 1 : 0} ${to}`);
  };

  const show = () => {
    const found = all();
    const a = found[against];
    for (const group of svg.querySelectorAll("[data-arrow]")) {
      const i = Number(group.dataset.arrow);
      drawArrow(group, found[i], i === against ? sideOf(found) : 0);
      group.classList.toggle("chosen", i === chosen);
    }
    if (!coefficients) drawBeside(a, found[chosen]);
    const ways = svg.querySelectorAll(".way");
    if (ways.length) {
      place(ways[0], at(found[1]), at(found[0]));
      place(ways[1], at(found[2]), at(found[3]));
    }
    const best = nearest(found.at(-1));
    for (const group of svg.querySelectorAll("[data-dot]")) {
      group.classList.toggle("nearest", Number(group.dataset.dot) === best);
    }
    fillNumbers(figure, found.flatMap((b) => [...b, Math.hypot(...b), degrees(a, b), dot(a, b)]));
    const grips = gripsOf(found.slice(0, handles.length).map(at));
    handles.forEach((handle, i) => {
      const [x, y] = grips[i];
      handle.style.left = `${(100 * x) / WIDE}%`;
      handle.style.top = `${(100 * y) / WIDE}%`;
      const [right, up] = found[i].map(numbers.shown);
      handle.ariaLabel = say("tip", { arrow: labels[i], x: right, y: up, first: axes[0], second: axes[1] });
    });
    tell(found, a, best);
  };

  // Where tips are at the same place, the arrow on top is taken hold of there, and another one further
  // out, at its name, or further in where the picture ends.
  const gripsOf = (tips) => {
    const order = [against, ...tips.keys()].filter((i, n, all) => all.indexOf(i) === n && i < tips.length);
    const grips = [];
    for (const i of order) {
      const [x, y] = tips[i];
      const length = Math.hypot(x - origin[0], y - origin[1]);
      const way = length ? [(x - origin[0]) / length, (y - origin[1]) / length] : [0, -1];
      const places = [0, 1, -1, 2, -2].map((n) => [x + n * APART * way[0], y + n * APART * way[1]]);
      const isFree = ([a, b]) =>
        Math.min(a, b, WIDE - a, WIDE - b) > 0 && grips.every((grip) => !grip || Math.hypot(grip[0] - a, grip[1] - b) >= APART);
      grips[i] = places.find(isFree) ?? places[0];
    }
    return grips;
  };

  const short = (number) => numbers.shown(Math.round(number * 100) / 100);
  const tell = (found, a, best) => {
    const b = found[chosen];
    const live = {
      a: labels[against],
      b: names[chosen],
      products: `${short(a[0])}×${short(b[0])} + ${short(a[1])}×${short(b[1])}`.replaceAll("+ −", "− "),
      product: short(dot(a, b)),
      lengths: `${short(Math.hypot(...a))}·${short(Math.hypot(...b))}`,
      angle: short(degrees(a, b)),
    };
    const total = found.at(-1).map(short).join(", ");
    const words = coefficients
      ? say("nearestIs", { total: `${given.total} = [${total}]`, nearest: given.dot_labels[best] })
      : say("productOf", live);
    telling(words, isMoved);
  };

  // --- what is done ---

  const within = (number) => Math.min(Math.max(Math.round(number * 100) / 100, low), high);
  const move = (i, [x, y]) => {
    vectors[i] = [within(x), within(y)];
    if (i !== against) chosen = i;
    isMoved = true;
    show();
  };
  const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  const handles = labels.map((_, i) => {
    const handle = document.createElement("button");
    handle.type = "button";
    handle.className = "handle";
    // The arrow that lies on top of the others.
    if (i === against) handle.style.zIndex = 1;
    handle.addEventListener("pointerdown", (event) => handle.setPointerCapture(event.pointerId));
    handle.addEventListener("pointermove", (event) => {
      if (!handle.hasPointerCapture(event.pointerId)) return;
      const { left, bottom, width } = svg.getBoundingClientRect();
      const scale = WIDE / width;
      const [x, y] = [(event.clientX - left) * scale, (bottom - event.clientY) * scale];
      move(i, [low + (x - EDGE) / unit, low + (y - EDGE) / unit]);
    });
    handle.addEventListener("keydown", (event) => {
      const way = KEYS[event.key];
      if (!way) return;
      event.preventDefault();
      const size = box[2] * (event.shiftKey ? 1 : 0.1);
      move(i, vectors[i].map((entry, k) => entry + size * way[k]));
    });
    handle.addEventListener("focus", () => {
      if (i === against) return;
      chosen = i;
      show();
    });
    svg.parentElement.append(handle);
    return handle;
  });
  figure.querySelector("[data-does='restart']").addEventListener("click", () => {
    vectors = structuredClone(first);
    chosen = given.chosen;
    show();
  });
  figure.querySelector(".controls").hidden = false;
  show();
};

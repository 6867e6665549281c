// Drawings that move: what starts each by its kind, and the buttons that play, stop and step.
const drawings = {};

// moments: how many there are now. show(place) draws one. pause: until the next, in milliseconds;
// stride: how many further that is. Returns what else may go to a moment.
const startPlayer = (figure, { moments, show, pause, stride = 1 }) => {
  const button = (name) => figure.querySelector(`[data-does="${name}"]`);
  const told = figure.querySelector(".told");
  let place = 0;
  // Whether the first stage is shown as a whole, and nothing was chosen since.
  let isOpening = false;
  let timer = null;

  const stop = () => {
    clearInterval(timer);
    timer = null;
    button("play").textContent = button("play").dataset.play;
    figure.classList.remove("plays");
    told.ariaLive = null;
  };
  // It stays a button that can be pressed: whoever steps by keys would lose their place.
  const isAtEnd = () => !isOpening && place === moments() - 1;
  const limit = () => {
    button("step").classList.toggle("spent", isAtEnd());
  };
  const go = (wanted) => {
    isOpening = false;
    place = Math.min(Math.max(wanted, 0), moments() - 1);
    show(place);
    limit();
  };
  const next = () => {
    go(place + stride);
    if (place === moments() - 1) stop();
  };
  const play = () => {
    // What runs by is not read aloud.
    told.ariaLive = "off";
    figure.classList.add("plays");
    button("play").textContent = button("play").dataset.pause;
    // At the first moment a whole stage may be shown: it begins with the first cell.
    if (place === 0 || place === moments() - 1) go(0);
    timer = setInterval(next, pause());
  };
  const turnTo = (wanted) => {
    stop();
    go(wanted);
  };
  button("play").addEventListener("click", () => (timer === null ? play() : stop()));
  button("step").addEventListener("click", () => {
    if (!isAtEnd()) turnTo(isOpening ? 0 : place + 1);
  });
  button("back")?.addEventListener("click", () => turnTo(place - 1));
  button("restart").addEventListener("click", () => turnTo(0));
  // What goes back has something to do once something was done.
  for (const kind of ["input", "click"]) {
    figure.addEventListener(kind, ({ target }) => figure.classList.toggle("begun", target !== button("restart")));
  }
  const open = () => {
    turnTo(0);
    isOpening = true;
    limit();
  };
  return { stop, at: () => place, go: turnTo, open };
};

// Sets a field, and the number that stands beside it.
const setControl = (figure, control, value) => {
  control.value = value;
  const output = figure.querySelector(`[data-output="${control.dataset.control}"]`);
  if (output) output.textContent = numbers.shown(Number(control.value));
};

// The fields of a figure by their names; change(name, value) hears of each.
const startControls = (figure, change) => {
  const found = {};
  for (const control of figure.querySelectorAll("[data-control]")) {
    const name = control.dataset.control;
    found[name] = control;
    control.addEventListener("input", () => {
      setControl(figure, control, control.value);
      change(name, control.value);
    });
  }
  for (const hidden of figure.querySelectorAll(".controls")) hidden.hidden = false;
  return found;
};

// Says a sentence of what is drawn, to those who see it and to those who do not.
const startTelling = (figure) => {
  const told = figure.querySelector(".told");
  const descriptions = [...figure.querySelectorAll("svg > desc")];
  return (words, isNews = true) => {
    setPowers(told, words, "sup");
    if (isNews) for (const description of descriptions) description.textContent = words;
  };
};

// Writes words into an element, the exponents of e above the line. raised: the element for these.
const setPowers = (element, words, raised) => {
  const pieces = words.split(/(?<=\be)\^(−?(?:∞|[\d.]+\d|\d))/);
  element.replaceChildren(
    ...pieces.flatMap((piece, n) => {
      if (n % 2 === 0) return piece ? [piece] : [];
      const above = document.createElementNS(element.namespaceURI, raised);
      above.textContent = piece;
      if (raised === "tspan") above.classList.add("above");
      return [above];
    }),
  );
};

// The cells of a drawing's tables, in the order in which they stand, get these numbers.
const fillNumbers = (figure, found) => {
  figure.querySelectorAll(".numbers td.number").forEach((cell, place) => {
    cell.dataset.value = found[place];
    cell.textContent = numbers.shown(found[place]);
  });
};

// How wide a picture is that is not stretched, in its own units.
const NARROWEST = 360;

// A picture gets as wide as there is room: it moves what has `data-x`, makes what has `data-narrow`
// wider, by the shares of the additional width that stand beside them, and shifts whole groups. What
// `data-gutter` says of that width stays free at the right edge.
const startStretching = (figure, stretched) => {
  const svg = figure.querySelector("svg[data-stretch]");
  const [WIDEST, LARGER] = [680, 1.2];
  const stretch = () => {
    const { height } = svg.viewBox.baseVal;
    const wide = Math.min(Math.max(svg.parentElement.clientWidth / LARGER, NARROWEST), WIDEST);
    const more = (wide - NARROWEST) * (1 - Number(svg.dataset.gutter ?? 0));
    svg.setAttribute("viewBox", `0 0 ${wide} ${height}`);
    for (const one of svg.querySelectorAll("[data-x]")) {
      one.setAttribute("x", Number(one.dataset.x) + more * Number(one.dataset.share ?? 1));
    }
    for (const one of svg.querySelectorAll("[data-narrow]")) {
      const width = Number(one.dataset.narrow) + more * Number(one.dataset.grow ?? 1);
      if (one.dataset.wide) one.dataset.wide = width;
      else one.setAttribute("width", width);
    }
    for (const one of svg.querySelectorAll("[data-shift]")) {
      one.setAttribute("transform", `translate(${more * Number(one.dataset.shift)} 0)`);
    }
    stretched?.();
  };
  new ResizeObserver(stretch).observe(svg.parentElement);
};

drawings.total = (figure) => startStretching(figure);

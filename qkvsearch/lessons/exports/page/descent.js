// Gradient descent on a map: every step is computed here, and is that of the lesson's own code.

// The loss and its gradients: mean((middle + u·m − r)²) over the known ratings, and a penalty.
const descent = {
  gradients: (users, items, { ratings, middle, penalty }) => {
    const by = [users, items].map((rows) => rows.map((row) => row.map((entry) => 2 * penalty * entry)));
    const known = ratings.flat().filter((rating) => !Number.isNaN(rating)).length;
    let squares = 0;
    ratings.forEach((row, i) =>
      row.forEach((rating, j) => {
        if (Number.isNaN(rating)) return;
        const error = middle + users[i].reduce((sum, entry, k) => sum + entry * items[j][k], 0) - rating;
        squares += error * error;
        users[i].forEach((_, k) => {
          by[0][i][k] += (2 * error * items[j][k]) / known;
          by[1][j][k] += (2 * error * users[i][k]) / known;
        });
      }),
    );
    const long = [...users, ...items].flat().reduce((sum, entry) => sum + entry * entry, 0);
    return { loss: squares / known + penalty * long, users: by[0], items: by[1] };
  },

  moved: (rows, gradient, rate) => rows.map((row, i) => row.map((entry, k) => entry - rate * gradient[i][k])),
};

drawings.descent = (figure, say) => {
  const given = JSON.parse(figure.dataset.numbers);
  const held = (rows) => rows.map((row) => row.map(numbers.held));
  const settings = { ratings: held(given.ratings), middle: given.middle, penalty: given.penalty };
  const names = { query: given.user_names, key: given.item_names };
  const telling = startTelling(figure);
  const [map, below] = figure.querySelectorAll("svg");
  let rate = given.rate;

  // --- the walk: what was computed stays, until the rate changes what follows ---

  const walk = [];
  const measured = (users, items) => {
    const gradient = descent.gradients(users, items, settings);
    return { users, items, loss: gradient.loss, gradient };
  };
  walk.push(measured(held(given.users), held(given.items)));
  const at = (step) => {
    while (walk.length <= step) {
      const { users, items, gradient } = walk.at(-1);
      walk.push(measured(descent.moved(users, gradient.users, rate), descent.moved(items, gradient.items, rate)));
    }
    return walk[step];
  };

  // --- what is drawn: the places of lessons/drawings/descent.py ---

  const [WIDE, EDGE, LOW, LEFT, BELOW, ABOVE] = [360, 10, 150, 44, 24, 14];
  const scale = (WIDE / 2 - EDGE) / given.size;
  const clamp = (number) => Math.min(Math.max(Number.isNaN(number) ? 0 : number, EDGE), WIDE - EDGE);
  const onPaper = ([x, y]) => [clamp(WIDE / 2 + scale * x), clamp(WIDE / 2 - scale * y)];
  const onCurve = (loss, step) => {
    const share = Number.isNaN(loss) ? 1.1 : Math.min(loss / given.loss, 1.1);
    return [LEFT + ((WIDE - EDGE - LEFT) * step) / given.steps, LOW - BELOW - (LOW - BELOW - ABOVE) * share];
  };
  const joined = (places) => places.map((place) => place.map((entry) => entry.toFixed(1)).join(",")).join(" ");
  const short = (number) => numbers.shown(Math.round(number * 100) / 100);
  const predicted = (state, i, j) =>
    settings.middle + state.users[i].reduce((sum, entry, k) => sum + entry * state.items[j][k], 0);

  const nameBeside = ([x, y], wide, taken) => {
    const [right, middle, left] = [x + 10, x - wide / 2, x - 10 - wide];
    const spots = [[right, y + 4], [left, y + 4], [middle, y - 10], [middle, y + 19]];
    spots.push([right, y - 6], [left, y - 6], [right, y + 15], [left, y + 15]);
    const boxes = spots.map(([x1, base]) => [x1, base - 11, x1 + wide, base + 3]);
    const isFree = ([x1, y1, x2, y2]) =>
      x1 >= 0 && x2 <= WIDE && taken.every(([a, b, c, d]) => x1 >= c || x2 <= a || y1 >= d || y2 <= b);
    const best = Math.max(0, boxes.findIndex(isFree));
    taken.push(boxes[best]);
    return spots[best];
  };

  const draw = (step) => {
    const state = at(step);
    const rows = { query: state.users, key: state.items };
    const user = Number(controls.user.value);
    const ways = [...map.querySelectorAll(".way")];
    const each = [...walk.slice(0, step + 1)];
    [...given.user_names.keys()].forEach((i) => ways[i].setAttribute("points", joined(each.map((one) => onPaper(one.users[i])))));
    [...given.item_names.keys()].forEach((j) =>
      ways[given.user_names.length + j].setAttribute("points", joined(each.map((one) => onPaper(one.items[j])))),
    );
    const points = [...map.querySelectorAll(".point")];
    const keys = points.map((point) => point.dataset.point.split(" "));
    const places = keys.map(([role, k]) => onPaper(rows[role][k]));
    const taken = places.map(([x, y]) => [x - 7, y - 7, x + 7, y + 7]);
    for (const [n, point] of points.entries()) {
      const [role, k] = keys[n];
      point.setAttribute("transform", `translate(${places[n].join(" ")})`);
      const label = map.querySelector(`[data-name="${role} ${k}"]`);
      const more = role === "key" && user >= 0 ? ` ${short(predicted(state, user, k))}` : "";
      label.textContent = names[role][k] + more;
      const [begin, base] = nameBeside(places[n], label.getComputedTextLength(), taken);
      label.setAttribute("x", begin);
      label.setAttribute("y", base);
      point.classList.toggle("chosen", role === "query" && Number(k) === user);
    }
    below.querySelector(".losses").setAttribute("points", joined(each.map((one, k) => onCurve(one.loss, k))));
    const [x, y] = onCurve(state.loss, step);
    below.querySelector(".now").setAttribute("cx", x);
    below.querySelector(".now").setAttribute("cy", y);
    fillNumbers(figure, [...state.users.flat(), ...state.items.flat(), step, state.loss]);
    tell(state, step, user);
  };

  const tell = (state, step, user) => {
    const words = [say("stepAndLoss", { step, loss: numbers.shown(state.loss), rate: numbers.shown(rate) })];
    if (!(state.loss <= 4 * given.loss)) words.push(say("tooFast"));
    else if (user >= 0) {
      const each = given.item_names.map((name, j) => {
        const rating = settings.ratings[user][j];
        const said = Number.isNaN(rating) ? say("notRated") : say("rated", { rating });
        return `${name} ${short(predicted(state, user, j))} (${said})`;
      });
      words.push(`${given.user_names[user]}: ${each.join(", ")}`);
    }
    telling(words.join("\n"));
  };

  // --- what is done ---

  const isCalm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const player = startPlayer(figure, {
    moments: () => given.steps + 1,
    show: draw,
    pause: () => (isCalm ? 600 : 60),
    stride: isCalm ? 20 : 1,
  });
  const controls = startControls(figure, (name, value) => {
    if (name === "rate") {
      rate = Number(value);
      walk.length = player.at() + 1;
    }
    draw(player.at());
  });
  for (const point of map.querySelectorAll('[data-point^="query"]')) {
    const choose = () => {
      controls.user.value = point.dataset.point.split(" ")[1];
      draw(player.at());
    };
    point.addEventListener("pointerenter", choose);
    point.addEventListener("click", choose);
  }
  player.go(0);
};

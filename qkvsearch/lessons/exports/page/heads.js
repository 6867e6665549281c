// Heads of attention: a text, a layer, a head and a word to choose; lines, and all heads at a glance.

drawings.heads = (figure, say) => {
  const given = JSON.parse(figure.dataset.numbers);
  const { readings, levels, n_layers: nLayers, n_heads: nHeads } = given;
  const telling = startTelling(figure);
  const svg = figure.querySelector("svg");
  const lines = svg.querySelector(".lines");
  const written = svg.querySelector(".words");
  const overview = figure.querySelector("canvas");
  const place = { reading: 0, layer: given.layer, head: given.head, word: given.word };

  // --- weights: as they were computed, or as whole numbers in bytes ---

  const bytes = readings.map(({ codes }) => codes && Uint8Array.from(atob(codes), (letter) => letter.charCodeAt(0)));
  const matrix = (layer = place.layer, head = place.head) => {
    const { words, weights } = readings[place.reading];
    if (weights) return weights[layer][head];
    const n = words.length;
    const start = (layer * nHeads + head) * n * n;
    const codes = bytes[place.reading];
    return words.map((_, i) => words.map((_, j) => codes[start + i * n + j] / levels));
  };

  // --- what is drawn: the places of lessons/drawings/attention_lines.py ---

  const [WIDE, ROW, TOP, LEFT, RIGHT, LINE_WIDTH, MIN_WEIGHT] = [360, 25, 40, 108, 252, 9, 0.01];
  const height = (i) => TOP + ROW * i - 4;
  const make = (name, attributes, words = "") => {
    const found = document.createElementNS(svg.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
    found.textContent = words;
    return found;
  };

  const drawLines = (weights, word) => {
    const half = (LEFT + RIGHT) / 2;
    const paths = weights.flatMap((row, i) =>
      row.flatMap((weight, j) => {
        if (weight < MIN_WEIGHT) return [];
        const d = `M${LEFT + 6} ${height(i)}C${half} ${height(i)} ${half} ${height(j)} ${RIGHT - 6} ${height(j)}`;
        const path = make("path", {
          d,
          "stroke-width": 0.5 + LINE_WIDTH * weight,
          "stroke-opacity": 0.15 + 0.85 * Math.min(weight, 1),
          "data-at": `${i} ${j}`,
          "data-value": weight,
        });
        path.classList.toggle("faint", i !== word);
        return [path];
      }),
    );
    lines.replaceChildren(...paths);
  };

  const drawWords = () => {
    const { words } = readings[place.reading];
    svg.setAttribute("viewBox", `0 0 ${WIDE} ${TOP + ROW * words.length}`);
    written.replaceChildren(
      ...words.flatMap((word, i) => [
        make("text", { x: LEFT, y: height(i) + 4, "text-anchor": "end", class: "word", "data-asks": i }, word),
        make("text", { x: RIGHT, y: height(i) + 4, class: "word", "data-asked": i }, word),
      ]),
    );
    for (const label of written.querySelectorAll("[data-asks]")) {
      label.addEventListener("pointerenter", () => show(Number(label.dataset.asks)));
      label.addEventListener("click", () => {
        place.word = Number(label.dataset.asks);
        controls.word.value = place.word;
        show();
      });
    }
    controls.word?.replaceChildren(...words.map((word, i) => new Option(word, i)));
  };

  const fillTable = (weights) => {
    const { words } = readings[place.reading];
    const table = figure.querySelector(".numbers table");
    const heading = (word, scope) => Object.assign(document.createElement("th"), { textContent: word, scope });
    const head = table.tHead.rows[0];
    head.replaceChildren(head.cells[0], ...words.map((word) => Object.assign(heading(word, "col"), { className: "number" })));
    table.tBodies[0].replaceChildren(
      ...weights.map((row, i) => {
        const line = document.createElement("tr");
        line.append(heading(words[i], "row"), ...row.map(() => Object.assign(document.createElement("td"), { className: "number" })));
        return line;
      }),
    );
    fillNumbers(figure, weights.flat());
  };

  // Every head as a square of pixels, the one that is shown in a frame.
  const drawOverview = () => {
    if (!overview) return;
    const n = readings[place.reading].words.length;
    const paint = overview.getContext("2d");
    const size = overview.width / nHeads;
    const ink = getComputedStyle(figure).color;
    overview.height = size * nLayers;
    for (let layer = 0; layer < nLayers; layer++) {
      for (let head = 0; head < nHeads; head++) {
        const weights = matrix(layer, head);
        const side = (size - 8) / n;
        const [x, y] = [head * size + 4, layer * size + 4];
        paint.fillStyle = "#159aa6";
        weights.forEach((row, i) =>
          row.forEach((weight, j) => {
            paint.globalAlpha = Math.min(weight, 1);
            paint.fillRect(x + j * side, y + i * side, Math.ceil(side), Math.ceil(side));
          }),
        );
        const isShown = layer === place.layer && head === place.head;
        paint.globalAlpha = isShown ? 1 : 0.25;
        paint.strokeStyle = ink;
        paint.lineWidth = isShown ? 4 : 1;
        paint.strokeRect(x - 1, y - 1, size - 6, size - 6);
      }
    }
    paint.globalAlpha = 1;
  };

  const show = (word = place.word) => {
    const weights = matrix();
    drawLines(weights, word);
    for (const label of written.children) {
      label.classList.toggle("lit", Number(label.dataset.asks) === word);
    }
    fillTable(weights);
    const { words } = readings[place.reading];
    const best = words.map((_, j) => j).sort((a, b) => weights[word][b] - weights[word][a] || a - b);
    const found = best.slice(0, 4).map((j) => `${words[j]} ${numbers.shown(weights[word][j])}`);
    telling(`${nameOf()}${words[word]} → ${found.join(", ")}`);
  };
  const nameOf = () => {
    if (given.names.length) return `${given.names[place.head]}: `;
    if (nLayers * nHeads === 1) return "";
    return `${say("layerAndHead", { layer: place.layer + 1, head: place.head + 1 })}: `;
  };

  // --- what is done ---

  const controls = startControls(figure, (name, value) => {
    player?.stop();
    place[name] = Number(value);
    if (name === "reading") {
      place.word = Math.min(place.word, readings[place.reading].words.length - 1);
      drawWords();
      controls.word.value = place.word;
    }
    drawOverview();
    show();
  });
  const turnTo = (layer, head) => {
    Object.assign(place, { layer, head });
    if (controls.layer) controls.layer.value = layer;
    if (controls.head) controls.head.value = head;
    drawOverview();
    show();
  };
  // The player goes through all heads, if there are several.
  const player =
    nLayers * nHeads > 1
      ? startPlayer(figure, {
          moments: () => nLayers * nHeads,
          show: (head) => turnTo(Math.floor(head / nHeads), head % nHeads),
          pause: () => 1200,
        })
      : null;
  overview?.addEventListener("click", (event) => {
    const side = overview.clientWidth / nHeads;
    const [layer, head] = [event.offsetY, event.offsetX].map((at) => Math.floor(at / side));
    player?.go(Math.min(layer, nLayers - 1) * nHeads + Math.min(head, nHeads - 1));
  });
  svg.addEventListener("pointerleave", () => show());
  drawWords();
  controls.word.value = place.word;
  if (player) player.go(place.layer * nHeads + place.head);
  else show();
};

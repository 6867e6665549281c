// What a person who looks at a page would complain of, as sentences. Run in the page.
() => {
  const EDGE = 2; // pixels that letters may stand over an edge: their boxes are taller than they look
  const before = window.scrollY;
  const found = [];
  const say = (what, element) => {
    const text = (element.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40);
    const name = element.tagName.toLowerCase() + (element.id ? `#${element.id}` : "");
    found.push(`${what}: “${text}” in ${name}.${element.getAttribute("class") || ""}`);
  };

  const styleOf = (element) => getComputedStyle(element);
  // What is there for screen readers alone is a box of a pixel, or clipped to nothing; a link to skip
  // the header waits above the window until it has the focus.
  const isClippedAway = (element) => {
    for (let above = element; above && above !== document.body; above = above.parentElement) {
      if (styleOf(above).clipPath === "inset(50%)" || above.matches(".skip:not(:focus)")) return true;
    }
    return false;
  };
  const isShown = (element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !isClippedAway(element);
  /** What a function says of an element, asked once. */
  const once = (of) => {
    const known = new Map();
    return (element) => {
      if (!known.has(element)) known.set(element, of(element));
      return known.get(element);
    };
  };
  const isScrolled = once((element) => {
    for (let above = element; above && above !== document.body; above = above.parentElement) {
      const { overflowX } = styleOf(above);
      if (overflowX === "auto" || overflowX === "scroll") return true;
    }
    return false;
  });
  // The box that an ancestor cuts off what is inside, if any.
  const cutBy = (element) => {
    for (let above = element; above && above !== document.body; above = above.parentElement) {
      const { overflowX, overflowY } = styleOf(above);
      if (overflowX !== "visible" || overflowY !== "visible") return above;
    }
    return null;
  };

  // --- every run of visible text, with the boxes of its lines ---
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const runs = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest("script, style, template, noscript, option")) continue;
    if (!isShown(element)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter((box) => box.width > 0.5 && box.height > 0.5);
    if (boxes.length) runs.push({ node, element, boxes });
  }
  if (!runs.length) found.push("the page shows no text");

  // --- out of the window, or cut off without a sign ---
  const width = document.documentElement.clientWidth;
  for (const { element, boxes } of runs) {
    if (isScrolled(element)) continue;
    if (boxes.some((box) => box.left < -EDGE || box.right > width + EDGE)) say("out of the window", element);
    const cutter = cutBy(element);
    if (!cutter || styleOf(cutter).textOverflow === "ellipsis") continue;
    if (styleOf(cutter).webkitLineClamp !== "none") continue;
    const frame = cutter.getBoundingClientRect();
    // A line's box is taller than its letters, so a part of it may be cut without any of them.
    const isCut = (box) =>
      box.left < frame.left - EDGE ||
      box.right > frame.right + EDGE ||
      box.top < frame.top - 0.3 * box.height ||
      box.bottom > frame.bottom + 0.3 * box.height;
    if (boxes.some(isCut)) say("cut off", element);
  }

  // --- a list to choose from that has no room for what is chosen ---
  for (const list of document.querySelectorAll("select")) {
    if (!isShown(list) || list.selectedIndex < 0) continue;
    const alone = list.cloneNode();
    alone.removeAttribute("id");
    alone.append(list.options[list.selectedIndex].cloneNode(true));
    alone.style.cssText += "position: absolute; visibility: hidden; width: auto; min-width: 0; max-width: none";
    list.after(alone);
    if (alone.offsetWidth > list.offsetWidth + EDGE) say("cut off", alone);
    alone.remove();
  }

  // --- a word that goes on in the next line: "Scor", "e" ---
  for (const { node, element } of runs) {
    // Longer words, such as addresses, may go on in the next line where a column is narrow.
    for (const word of node.data.matchAll(/(?<![\p{Script=Latin}\d])[\p{Script=Latin}\d]{2,16}(?![\p{Script=Latin}\d])/gu)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const boxes = [...range.getClientRects()].filter((box) => box.width > 0.5);
      const isUpright = styleOf(element).writingMode === "horizontal-tb" && !element.closest("svg");
      if (isUpright && boxes.some((box) => box.top > boxes[0].bottom - EDGE)) say(`“${word[0]}” is broken`, element);
    }
  }

  // --- two texts over each other ---
  const lines = runs.flatMap(({ element, boxes }) => boxes.map((box) => ({ element, box })));
  lines.sort((one, other) => one.box.top - other.box.top);
  const layerOf = once((element) => {
    for (let above = element; above; above = above.parentElement) {
      if (["fixed", "sticky"].includes(styleOf(above).position) || above.matches("dialog, [popover]")) return above;
    }
    return null;
  });
  // Labels that are turned alike lie beside each other where their lines are a letter's height apart:
  // the boxes around them overlap.
  const turnOf = once((element) => {
    const matrix = element.ownerSVGElement ? element.getScreenCTM() : null;
    if (!matrix || Math.abs(matrix.b) < 0.1) return null;
    const start = new DOMPoint(element.getAttribute("x"), element.getAttribute("y")).matrixTransform(matrix);
    const letters = parseFloat(styleOf(element).fontSize) * Math.hypot(matrix.a, matrix.b);
    return { angle: Math.atan2(matrix.b, matrix.a), start, letters };
  });
  const areBeside = (one, other) => {
    const [a, b] = [turnOf(one), turnOf(other)];
    if (!a || !b || Math.abs(a.angle - b.angle) > 0.01) return false;
    const apart = (b.start.y - a.start.y) * Math.cos(a.angle) - (b.start.x - a.start.x) * Math.sin(a.angle);
    return Math.abs(apart) >= 0.7 * Math.min(a.letters, b.letters);
  };
  for (const [place, one] of lines.entries()) {
    for (let next = place + 1; next < lines.length && lines[next].box.top < one.box.bottom; next++) {
      const other = lines[next];
      const across = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
      const down = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
      // A line's box is taller than its letters: those of two lines of a dense list may touch.
      const low = 0.35 * Math.min(one.box.height, other.box.height);
      if (across <= EDGE || down <= low || layerOf(one.element) !== layerOf(other.element)) continue;
      if (isScrolled(one.element) !== isScrolled(other.element)) continue;
      if (areBeside(one.element, other.element)) continue;
      say(`covered by “${other.element.textContent.trim().slice(0, 20)}”`, one.element);
    }
  }

  // --- a text under something that is painted over it ---
  const isPainted = (element) => {
    const { backgroundColor, backgroundImage, opacity } = styleOf(element);
    if (Number(opacity) < 0.5) return false;
    // The alpha of rgba(…, 0.3) or of color(… / 0.3); a colour without one hides what is under it.
    const alpha = backgroundColor.match(/rgba\(.*, ([\d.]+)\)|\/ ([\d.]+)\)/);
    const hides = alpha === null || Number(alpha[1] ?? alpha[2]) > 0.5;
    return hides || backgroundImage !== "none" || element.matches("img, canvas, video");
  };
  /** What is painted between a text and the eye, at the middle of its box; null for nothing. */
  const coverOf = (element, box) => {
    for (const over of document.elementsFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2)) {
      if (over.contains(element) || element.contains(over)) return null;
      if (!layerOf(over) && isPainted(over)) return over;
    }
    return null; // outside the window, or in what is scrolled away
  };
  const height = window.innerHeight;
  const flat = runs.filter(({ element }) => !layerOf(element) && !isScrolled(element));
  for (let top = 0; top < document.documentElement.scrollHeight; top += height / 2) {
    window.scrollTo({ top, behavior: "instant" });
    const moved = window.scrollY;
    for (const { element, boxes } of flat) {
      const seen = boxes[0].top + before - moved;
      if (seen < 0 || seen >= height) continue;
      const box = new DOMRect(boxes[0].left, seen, boxes[0].width, boxes[0].height);
      const over = coverOf(element, box);
      if (over) say(`under ${over.tagName.toLowerCase()}.${over.getAttribute("class") || ""}`, element);
    }
  }
  window.scrollTo({ top: before, behavior: "instant" });

  // --- Chinese upside down: letters of Latin words may be turned, those of Chinese stand ---
  for (const { node, element } of runs) {
    if (!/\p{Script=Han}/u.test(node.data)) continue;
    let turned = new DOMMatrix();
    for (let above = element; above; above = above.parentElement) {
      const { transform } = styleOf(above);
      if (transform !== "none") turned = new DOMMatrix(transform).multiply(turned);
    }
    if (turned.d < -0.5) say("upside down", element);
  }

  // --- signs that no font of the page has ---
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 32;
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  pen.font = `20px ${styleOf(document.body).fontFamily}`;
  const drawn = (sign) => {
    pen.clearRect(0, 0, 32, 32);
    pen.fillText(sign, 4, 24);
    return pen.getImageData(0, 0, 32, 32).data.join();
  };
  const missing = drawn("\u{10FFFE}");
  const signs = new Set(runs.flatMap(({ node }) => [...node.data]));
  for (const sign of signs) {
    if (/[\p{L}\p{N}\p{P}\p{S}]/u.test(sign) && drawn(sign) === missing) found.push(`no font has ${sign}`);
  }
  return [...new Set(found)];
}

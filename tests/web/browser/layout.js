// What a person who looks at a page would complain of, as sentences. Run in the page.
() => {
  const EDGE = 2; // pixels that letters may stand over an edge: their boxes are taller than they look
  const found = [];
  const say = (what, element) => {
    const text = (element.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40);
    const name = element.tagName.toLowerCase() + (element.id ? `#${element.id}` : "");
    found.push(`${what}: “${text}” in ${name}.${element.getAttribute("class") || ""}`);
  };

  const styleOf = (element) => getComputedStyle(element);
  const isShown = (element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) &&
    !element.closest(".hidden-visually, .skip, [aria-hidden=true].measure");
  const isScrolled = (element) => {
    for (let above = element; above && above !== document.body; above = above.parentElement) {
      const { overflowX } = styleOf(above);
      if (overflowX === "auto" || overflowX === "scroll") return true;
    }
    return false;
  };
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
    const isCut = (box) => box.left < frame.left - EDGE || box.right > frame.right + EDGE;
    if (boxes.some(isCut)) say("cut off", element);
  }

  // --- a word that goes on in the next line: "Scor", "e" ---
  for (const { node, element } of runs) {
    for (const word of node.data.matchAll(/[\p{Script=Latin}\d]{2,16}/gu)) {
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
  const layerOf = (element) => {
    for (let above = element; above; above = above.parentElement) {
      if (["fixed", "sticky"].includes(styleOf(above).position) || above.matches("dialog, [popover]")) return above;
    }
    return null;
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
      say(`covered by “${other.element.textContent.trim().slice(0, 20)}”`, one.element);
    }
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

// The API, question by question: what it takes and gives, with a form that asks it.
import { ask } from "./api.js";
import { fill, formOf, read } from "./docs-form.js";
import { byId, el } from "./dom.js";
import { describe, fieldsOf } from "./schema.js";
import { announce, begin, onKey, remember, state } from "./shell.js";
import { fetchAllowed } from "./token.js";
import { count, facts, say } from "./words.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
// So many lines of an answer are shown at once, and at most.
const FIRST = 24;
const MOST = 2000;
const english = (text) => el("p", { lang: "en" }, text);

// --- what a question gives ---

function answerOf(responses) {
  const schema = responses[200]?.content?.["application/json"]?.schema;
  const fields = schema ? fieldsOf(schema) : [];
  return fields.length ? folded(say("fields"), fieldTable(fields)) : null;
}

const folded = (title, inside) => el("details", {}, el("summary", {}, title), inside);

function fieldTable(fields) {
  const head = ["field", "type", "meaning"].map((name) => el("th", { scope: "col" }, say(name)));
  const rows = fields.map(([name, type, meaning]) =>
    el("tr", {}, el("th", { scope: "row" }, el("code", {}, name)), el("td", { lang: "en" }, type), el("td", { lang: "en" }, meaning)),
  );
  return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows)));
}

// --- asking it ---

/** Quoted for a shell. */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curl(method, address, headers, body) {
  const sent = { ...(facts.hasToken ? { Authorization: "Bearer TOKEN" } : {}), ...headers };
  const parts = ["curl", ...(method === "GET" ? [] : ["-X", method])];
  for (const [name, value] of Object.entries(sent)) parts.push("-H", quoted(`${name}: ${value}`));
  if (body !== undefined) parts.push("-d", quoted(body));
  return [...parts, quoted(new URL(address, location.href).href)].join(" ");
}

/** As people read it; what is no JSON, as it is. */
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function shownText(text) {
  const lines = text.split("\n");
  const code = (part) => el("pre", { tabindex: 0, lang: "en" }, el("code", {}, part.join("\n")));
  if (lines.length <= FIRST) return [code(lines)];
  const cut = lines.length > MOST ? [el("p", { class: "note" }, say("longer", { shown: count(MOST), lines: count(lines.length) }))] : [];
  return [
    code([...lines.slice(0, FIRST), "…"]),
    folded(say("whole", { lines: count(lines.length) }), el("div", {}, cut, code(lines.slice(0, MOST)))),
  ];
}

async function run(operation) {
  const { method, path, form, result } = operation;
  await operation.filled; // the examples, which may still be on their way
  const asked = read(operation);
  if (asked.problem) {
    result.replaceChildren(el("p", { class: "note bad", role: "alert" }, asked.problem));
    return;
  }
  if (operation.changes && !window.confirm(say("sure", { method, path }))) return;
  remember([["ask", operation.id], ...asked.values]);
  result.replaceChildren(el("p", { class: "quiet" }, say("running")));
  form.querySelector("button").disabled = true;
  const began = performance.now();
  try {
    const answer = await fetchAllowed(asked.address, { method, headers: asked.headers, body: asked.body });
    const text = await answer.text();
    const told = say("told", {
      status: answer.status,
      phrase: answer.statusText,
      milliseconds: count(Math.round(performance.now() - began)),
      bytes: count(new TextEncoder().encode(text).length),
    });
    result.replaceChildren(
      el("h4", {}, say("asCurl")),
      el("pre", { tabindex: 0, lang: "en" }, el("code", {}, curl(method, asked.address, asked.headers, asked.body))),
      el("h4", {}, say("answer")),
      el("p", { class: answer.ok ? "told" : "told bad" }, told),
      ...shownText(pretty(text)),
    );
    announce(told);
  } catch {
    result.replaceChildren(el("p", { class: "note bad", role: "alert" }, say("offline")));
  }
  form.querySelector("button").disabled = false;
}

// --- a question ---

function operationOf(method, path, described) {
  const id = described.operationId;
  const changes = method === "delete" || (method !== "get" && described.tags?.includes("record"));
  const operation = { id, method: method.toUpperCase(), path, described, changes };
  operation.form = formOf(operation);
  operation.result = el("div", { class: "result" });
  operation.form.addEventListener("submit", (event) => {
    event.preventDefault();
    run(operation);
  });
  operation.box = el(
    "details",
    { class: changes ? "operation changes" : "operation", id },
    el(
      "summary",
      {},
      el("span", { class: "method" }, operation.method),
      el("code", {}, path),
      el("span", { class: "what", lang: "en" }, described.summary),
      changes ? el("span", { class: "warns" }, say("changes")) : null,
    ),
    described.description ? english(described.description) : null,
    operation.form,
    operation.result,
    answerOf(described.responses),
  );
  // Examples of this catalog are asked for when somebody looks.
  operation.box.addEventListener("toggle", () => {
    operation.filled ??= fill(operation, ask);
  });
  return operation;
}

async function show() {
  const page = byId("page");
  const answer = await fetch("/openapi.json").catch(() => null);
  page.removeAttribute("aria-busy");
  if (!answer?.ok) {
    page.replaceChildren(el("p", { class: "note bad", role: "alert" }, say("offline")));
    return;
  }
  const openapi = await answer.json();
  describe(openapi);
  byId("about").textContent = openapi.info.description;
  const operations = Object.entries(openapi.paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => methods[method]).map((method) => operationOf(method, path, methods[method])),
  );
  const groups = Map.groupBy
    ? Map.groupBy(operations, (one) => one.described.tags?.[0] ?? "")
    : new Map([["", operations]]);
  const note = facts.readOnly ? [el("p", { class: "note" }, say("readOnly"))] : [];
  note.push(english(openapi.components.responses.Error.description));
  page.replaceChildren(
    ...note,
    ...[...groups].map(([tag, some]) => el("section", {}, el("h2", { lang: "en" }, tag), some.map((one) => one.box))),
  );
  announce(say("shown", { n: count(operations.length) }));
  await asAddressed(operations);
}

/** What the address says was asked is asked again, unless it changes something. */
async function asAddressed(operations) {
  const asked = state();
  const operation = operations.find((one) => one.id === asked.get("ask"));
  if (!operation) return;
  operation.filled = fill(operation, ask, asked);
  operation.box.open = true;
  operation.box.scrollIntoView();
  if (!operation.changes) run(operation);
}

function step(by) {
  const all = [...document.querySelectorAll(".operation > summary")];
  const here = all.indexOf(document.activeElement);
  if (here < 0 && document.activeElement !== document.body && document.activeElement !== byId("main")) return false;
  all[Math.min(Math.max(here + by, 0), all.length - 1)]?.focus();
  return true;
}
onKey("ArrowDown", "↓ ↑", say("helpAsked"), () => step(1));
onKey("ArrowUp", "", say("helpAsked"), () => step(-1));
begin();
byId("page").append(el("p", { class: "quiet" }, say("loading")));
show();

// The form of a question of the API: a field for each parameter, with examples; and what it asks.
import { el } from "./dom.js";
import { exampleOf, plain, typeOf } from "./schema.js";
import { count, say } from "./words.js";

/** What a parameter may be, in words. */
function limitsOf(parameter) {
  const schema = plain(parameter.schema);
  const found = [typeOf(schema)];
  const tell = (name, limit) => limit !== undefined && found.push(say(name, { limit: count(limit) }));
  tell("atLeast", schema.minimum);
  tell("above", schema.exclusiveMinimum);
  tell("atMost", schema.maximum);
  tell("characters", schema.maxLength);
  if (schema.type === "array") {
    if (schema.maxItems === undefined) found.push(say("oneALine"));
    else tell("entries", schema.maxItems);
  }
  if (parameter.required) found.push(say("required"));
  else if (schema.default !== undefined && schema.default !== null && schema.default !== "" && String(schema.default) !== "") {
    found.push(say("defaults", { value: JSON.stringify(schema.default) }));
  }
  return found.join(", ");
}

/** A form has its fields as properties: one called "matches" would take the place of a method. */
const nameOf = (parameter) => `asked ${parameter.name}`;

function controlOf(parameter, id) {
  const schema = plain(parameter.schema);
  const named = { id, name: nameOf(parameter), "aria-describedby": `${id}-about` };
  if (schema.type === "boolean") return el("input", { ...named, type: "checkbox" });
  if (schema.enum) {
    const options = schema.enum.map((one) => el("option", { value: one, selected: one === schema.default }, one));
    return el("select", named, options);
  }
  if (schema.type === "array") return el("textarea", { ...named, rows: 2, required: parameter.required });
  const kind = ["integer", "number"].includes(schema.type) ? { inputmode: "decimal" } : {};
  const empty = schema.default ?? "";
  return el("input", {
    ...named, ...kind, type: "text", autocomplete: "off", spellcheck: "false", required: parameter.required,
    placeholder: empty === "" ? null : String(empty),
  });
}

function fieldOf(parameter, operation) {
  const id = `${operation.id}-${parameter.name}`;
  const about = parameter.description ?? plain(parameter.schema).description ?? "";
  return el(
    "div",
    { class: "field" },
    el("label", { for: id }, el("code", {}, parameter.name)),
    controlOf(parameter, id),
    el("p", { class: "quiet", id: `${id}-about`, lang: "en" }, about, about ? " " : null, el("span", {}, limitsOf(parameter))),
  );
}

const bodyOf = ({ described }) => described.requestBody?.content?.["application/json"];

/** What must be given comes first, then what has an example. */
const importance = ({ required, schema }) =>
  2 * Number(required) + Number(Boolean(plain(schema).examples || plain(schema)["x-example-of"]));

/** The form, with what examples the description has. */
export function formOf(operation) {
  const parameters = (operation.described.parameters ?? []).toSorted((a, b) => importance(b) - importance(a));
  const body = bodyOf(operation);
  const fields = parameters.map((one) => fieldOf(one, operation));
  if (body) {
    const id = `${operation.id}-body`;
    const area = el("textarea", { id, name: " body", rows: 8, spellcheck: "false" });
    area.value = writtenExample(body, () => "");
    fields.push(el("div", { class: "field wide" }, el("label", { for: id }, say("body")), area));
  }
  if (!fields.length) fields.push(el("p", { class: "quiet" }, say("none")));
  const form = el("form", { autocomplete: "off" }, el("div", { class: "fields" }, fields), el("button", { type: "submit" }, say("run")));
  for (const parameter of parameters) put(form, parameter, plain(parameter.schema).examples?.[0] ?? parameter.example);
  return form;
}

const writtenExample = (body, ofCatalog) =>
  JSON.stringify(body.example ?? Object.values(body.examples ?? {})[0]?.value ?? exampleOf(body.schema, ofCatalog), null, 2);

function put(form, parameter, value) {
  if (value === undefined || value === null) return;
  const field = form.elements.namedItem(nameOf(parameter));
  if (field.type === "checkbox") field.checked = String(value) === "true";
  else field.value = Array.isArray(value) ? value.join("\n") : String(value);
}

/** Fill in what the address says, and what only this catalog has examples of. */
export async function fill(operation, ask, address = new URLSearchParams()) {
  for (const parameter of operation.described.parameters ?? []) {
    const said = address.getAll(parameter.name);
    if (said.length) put(operation.form, parameter, said);
    else if (address.has("ask")) put(operation.form, parameter, plain(parameter.schema).enum ? plain(parameter.schema).default : "");
    else await fillFromCatalog(operation, parameter, ask);
  }
  await fillBody(operation, ask);
}

async function fillFromCatalog(operation, parameter, ask) {
  const place = plain(parameter.schema)["x-example-of"];
  if (!place) return;
  const field = operation.form.elements.namedItem(nameOf(parameter));
  const before = field.value;
  const found = await catalogExample(place, ask);
  // What was typed meanwhile stays.
  if (field.value === before) put(operation.form, parameter, found);
}

/** The same for what is sent as JSON. */
async function fillBody(operation, ask) {
  const body = bodyOf(operation);
  if (!body) return;
  const area = operation.form.elements.namedItem(" body");
  const before = area.value;
  const places = new Set();
  writtenExample(body, (place) => {
    places.add(place);
    return "";
  });
  const known = new Map();
  for (const place of places) known.set(place, await catalogExample(place, ask));
  if (area.value === before) area.value = writtenExample(body, (place) => known.get(place) ?? "");
}

/** The column of the first row of a listing: "items.id". */
async function catalogExample(place, ask) {
  const [listing, column] = place.split(".");
  const found = await ask(listing, { k: 1 }).catch(() => null);
  return found?.rows[0]?.[column];
}

/** What is asked: {address, headers, body, values}, or {problem}. */
export function read(operation) {
  const { form, described } = operation;
  const query = new URLSearchParams();
  const headers = {};
  const values = {};
  let address = operation.path;
  for (const parameter of described.parameters ?? []) {
    const field = form.elements.namedItem(nameOf(parameter));
    const found = valuesOf(field, plain(parameter.schema));
    for (const value of found) {
      if (parameter.in === "query") query.append(parameter.name, value);
      if (parameter.in === "header") headers[parameter.name] = value;
    }
    if (parameter.in === "path") address = address.replace(`{${parameter.name}}`, encodeURIComponent(found[0] ?? ""));
    if (found.length && parameter.in !== "header") values[parameter.name] = found;
  }
  if (query.size) address += `?${query}`;
  const written = form.elements.namedItem(" body");
  if (!written) return { address, headers, values: flat(values) };
  try {
    const body = JSON.stringify(JSON.parse(written.value));
    return { address, headers: { ...headers, "Content-Type": "application/json" }, body, values: flat(values) };
  } catch (error) {
    return { problem: say("notJson", { detail: error.message }) };
  }
}

function valuesOf(field, schema) {
  if (field.type === "checkbox") return field.checked ? ["true"] : [];
  if (schema.type === "array") return field.value.split("\n").filter((line) => line.trim());
  return field.value === "" || (schema.enum && field.value === schema.default) ? [] : [field.value];
}

const flat = (values) => Object.entries(values).flatMap(([name, some]) => some.map((one) => [name, one]));

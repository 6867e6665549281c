// Questions to the server: as JSON, with the token where one is demanded, the newest answer alone.
import { facts, say } from "./words.js";
import { fetchAllowed } from "./token.js";

export const API = `${facts.root}/api/v1/`;

/** A question that was refused: `message` says why, `status` is that of HTTP, 0 without an answer. */
export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** The parameters as an address has them: lists are repeated, what is empty is left out. */
export function query(values) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "" && one !== false) found.append(name, one);
    }
  }
  return found;
}

/** The answer to GET API + path, as JSON. Raises `Refused`. options: signal, method, body. */
export async function ask(path, values = {}, options = {}) {
  const parameters = query(values).toString();
  const address = `${API}${path}${parameters ? `?${parameters}` : ""}`;
  const { signal, method = "GET", body, headers = {} } = options;
  const sent = { signal, method, headers: { Accept: "application/json", ...headers } };
  if (body !== undefined) {
    sent.body = JSON.stringify(body);
    sent.headers["Content-Type"] = "application/json";
  }
  for (let tries = 0; ; tries += 1) {
    let answer;
    try {
      answer = await fetchAllowed(address, sent);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refused(0, say("offline"));
    }
    if (answer.ok) return answer.json();
    if (answer.headers.has("Retry-After") && tries < 3) {
      await new Promise((done) => setTimeout(done, 1000 * Number(answer.headers.get("Retry-After"))));
      continue;
    }
    const problem = await answer.json().catch(() => ({ detail: answer.statusText }));
    throw new Refused(answer.status, problem.detail);
  }
}

/** A function that asks by `question(values, signal)` and hands each answer to `show`: at most one
 *  question is under way, the newest waits for it, and those between are never asked. So answers
 *  cannot overtake each other. What it returns has `forget()`: neither what is under way nor what
 *  waits is shown. */
export function latest(question, show, fail) {
  let running = false;
  let waiting = null;
  let forgotten = 0;
  async function run(values) {
    running = true;
    const asked = forgotten;
    try {
      const answer = await question(values);
      if (asked !== forgotten) return;
      // What was typed meanwhile is about to be answered; this is still better than nothing.
      show(answer, values, waiting === null);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (waiting === null && asked === forgotten) fail(error, values);
    } finally {
      running = false;
      const next = waiting;
      waiting = null;
      if (next !== null) run(next);
    }
  }
  function put(values) {
    if (running) waiting = values;
    else run(values);
  }
  put.forget = () => {
    waiting = null;
    forgotten += 1;
  };
  return put;
}

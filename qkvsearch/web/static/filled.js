// Pages that are filled once with what the server has.
import { Refused } from "./api.js";
import { code } from "./code.js";
import { byId, el } from "./dom.js";
import { refusal } from "./server.js";
import { announce, begin } from "./shell.js";
import { say } from "./words.js";

/** A command of the terminal. */
export const command = (line) => el("pre", { lang: "en" }, code(`qkvsearch -w WORKSPACE ${line}`));

/** Fill the page with what `make` promises, {nodes, said}: its elements, of which some may be null, and what is told
 *  whoever hears it; or with why the server refuses. */
export async function fillPage(make) {
  const page = byId("page");
  begin();
  page.append(el("p", { class: "quiet" }, say("loading")));
  try {
    const { nodes, said } = await make();
    page.replaceChildren(...nodes.filter((node) => node !== null));
    announce(said);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    page.replaceChildren(el("p", { class: "note bad", role: "alert" }, say("failed", { detail: refusal(error) })));
  }
  page.removeAttribute("aria-busy");
}

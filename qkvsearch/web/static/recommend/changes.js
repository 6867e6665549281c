// What leaving something out changes: which hits rose, fell, came and went, and by how much.
import { byId, el, owned } from "../dom.js";
import { count, say, signed } from "../words.js";

const byIdOf = (hits) => new Map(hits.map((hit) => [String(hit.id), hit]));

/** Marks by id for `hits`, and what went. base, now: more hits without reasons, before and after. */
export function compared(hits, base, now, without) {
  const [before, after] = [byIdOf(base), byIdOf(now)];
  const marks = new Map();
  const counts = { rose: 0, fell: 0, came: 0, went: 0 };
  for (const hit of hits) {
    const id = String(hit.id);
    const was = before.get(id);
    const more = was ? say("scoreBy", { change: signed(hit.score - was.score) }) : "";
    if (!was || was.rank > hits.length) {
      counts.came += 1;
      const text = without.has(id) ? say("cameItself") : was ? say("cameFrom", { rank: count(was.rank) }) : say("came");
      marks.set(id, { kind: "came", text, more });
    } else if (was.rank > hit.rank) {
      counts.rose += 1;
      marks.set(id, { kind: "rose", text: `▲ ${count(was.rank - hit.rank)}`, more });
    } else if (was.rank < hit.rank) {
      counts.fell += 1;
      marks.set(id, { kind: "fell", text: `▼ ${count(hit.rank - was.rank)}`, more });
    } else marks.set(id, { kind: "", text: "", more });
  }
  const top = new Set(hits.map((hit) => String(hit.id)));
  const went = base.slice(0, hits.length || base.length).filter((hit) => !top.has(String(hit.id)));
  counts.went = went.length;
  const gone = went.map((hit) => ({ hit, now: after.get(String(hit.id)) }));
  return { marks, counts, gone, looked: now.length };
}

/** "2 rose, 1 fell, 1 came, 1 went". */
export const counted = (counts) =>
  say("changes", Object.fromEntries(Object.entries(counts).map(([name, n]) => [name, count(n)])));

/** The panel: what is left out, each to be brought back by a click, and what went. */
export function showChanges(without, titleOf, found, bringBack) {
  const panel = byId("changed");
  panel.hidden = !without.size;
  if (!without.size) return;
  const chips = [...without].map((id) =>
    el(
      "button",
      { type: "button", class: "chip", "aria-pressed": "true", "data-without": id, title: say("bringBack"), onclick: () => bringBack(id, titleOf(id)) },
      owned(titleOf(id), 80),
      el("span", { "aria-hidden": "true" }, " ↺"),
    ),
  );
  const held = document.activeElement?.dataset.without;
  byId("left-out").replaceChildren(...chips);
  if (held !== undefined) (chips.find((chip) => chip.dataset.without === held) ?? chips[0]).focus({ preventScroll: true });
  byId("change-counts").textContent = found ? counted(found.counts) : "";
  const gone = (found?.gone ?? []).map(({ hit, now }) =>
    el(
      "li",
      {},
      owned(hit.title, 120),
      el(
        "span",
        { class: "quiet" },
        ` ${
          now
            ? say("wentTo", { before: count(hit.rank), now: count(now.rank), change: signed(now.score - hit.score) })
            : say("wentAway", { before: count(hit.rank), n: count(found.looked) })
        }`,
      ),
    ),
  );
  byId("gone").replaceChildren(...gone);
  byId("gone-heading").hidden = !gone.length;
}

// The card of an item beside its place on the map: title, kind, and its picture once that is known.
import { byId, el, owned } from "../dom.js";
import { hasPictures, offerOf, pictureOf, whole } from "../item_card.js";

// The mouse rests so long before a picture is asked for.
const RESTS = 120;
let waiting = 0;

/** Show the card of an item; where there are pictures, with what it costs. said: nodes below its title. place: {px, py, width, height}, in the box. */
export function showCard({ id, title }, said, { px, py, width, height }) {
  const card = byId("tip");
  const room = hasPictures() ? el("span", { class: "picture" }) : null;
  const words = el("span", {}, el("b", {}, owned(title, 120)), said);
  card.replaceChildren(...[room, words].filter(Boolean));
  card.dataset.item = id;
  card.hidden = false;
  const left = px > width / 2 ? px - card.offsetWidth - 14 : px + 14;
  const top = py > height / 2 ? py - card.offsetHeight - 10 : py + 10;
  const within = (value, size, whole) => Math.max(0, Math.min(value, whole - size));
  card.style.transform = `translate(${within(left, card.offsetWidth, width)}px, ${within(top, card.offsetHeight, height)}px)`;
  clearTimeout(waiting);
  if (room) waiting = setTimeout(() => whole(id).then((item) => card.dataset.item === id && complete(item)), RESTS);

  function complete(item) {
    room.replaceWith(pictureOf(item) ?? "");
    words.append(offerOf(item) ?? "");
  }
}

export function hideCard() {
  clearTimeout(waiting);
  byId("tip").hidden = true;
}

// An item as people know it: its picture, its title as a link, its price and its other cells. Pages that list items
// beside the search page show the same of them as the search page does.
import { ask, Refused } from "./api.js";
import { el, owned } from "./dom.js";
import {
  cellOf,
  cells,
  offer,
  ownAddress,
  picture,
  readPrices,
  shortTitle,
  wholeTitle,
} from "./search/cells.js";
import { facts } from "./words.js";

// Columns to show, as `facets` describes them.
let columns = [];

/** Of an answer to `facets`. */
export function useColumns(there) {
  columns = [...there.columns, ...there.addresses];
}

/** What `fields` of a question must be, so that its hits can be shown. */
export const fields = () => columns.map((column) => column.name).join(",");

// Of each id: a promise of all cells of the item.
const wholes = new Map();

/** All cells of an item, for which it asks once; none where the server refuses that, or, until the next time, where
 *  there is no answer. */
export function whole(id) {
  if (!wholes.has(id)) {
    const found = ask(`items/${encodeURIComponent(id)}`).catch((error) => {
      if (!(error instanceof Refused)) wholes.delete(id);
      return {};
    });
    wholes.set(id, found);
  }
  return wholes.get(id);
}

/** Look through rows that are listed together, before they are. */
export const readTogether = (rows) => readPrices(rows, columns);

/** Whether some items have pictures. */
export const hasPictures = () => columns.some((column) => column.display === "image");

/** What kind of thing an item is: the cell of the first column of texts; "" for none. */
export function kindOf(item) {
  const column = columns.find((one) => one.is_text && !one.display);
  return String((column && cellOf(item, column)) ?? "");
}

/** Where a title leads: to the item's own address, otherwise to the items that are similar to it. */
export const addressOf = (item) =>
  ownAddress(item, columns)?.href ?? `${facts.root}/?similar=${encodeURIComponent(item.id)}`;

/** The picture of an item in its square; null where the catalog has none. */
export const pictureOf = (item) => picture(item, columns);

/** What it costs and whether it can be had; null where nothing says so. */
export const offerOf = (item) => offer(item, columns);

/** What is said of an item: its title in a heading of this level, what it costs and its cells. */
export function about(item, level = "h3") {
  const title = el("a", { class: "title", href: addressOf(item), rel: "noreferrer", title: wholeTitle(item.title || item.id) }, owned(shortTitle(item.title || item.id)));
  return [el(level, {}, title), offerOf(item), cells(item, columns, null)];
}

// Links to JSON, on servers that demand a token.
import { fetchAllowed, token } from "./token.js";

/** A link sends no token: the JSON that it leads to is asked for with it, and opened in its place. */
async function follow(event) {
  const link = event.target.closest?.("a[href]");
  if (token() === null || !link || event.button > 1) return;
  const to = new URL(link.href);
  if (to.origin !== location.origin || !to.pathname.endsWith(".json")) return;
  event.preventDefault();
  const isBeside = event.button === 1 || event.ctrlKey || event.metaKey || event.shiftKey;
  try {
    const answer = await fetchAllowed(to);
    window.open(URL.createObjectURL(await answer.blob()), isBeside ? "_blank" : "_self");
  } catch {
    location.assign(to); // the browser says what is wrong
  }
}

for (const name of ["click", "auxclick"]) document.addEventListener(name, follow);

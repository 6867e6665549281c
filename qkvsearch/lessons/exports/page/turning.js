// The drawing of a table that turns: its boxes move to where they are in the other way.

drawings.turning = (figure) => {
  const { told } = JSON.parse(figure.dataset.numbers);
  const [svg] = figure.querySelectorAll("svg");
  const ways = [...svg.querySelectorAll(".way-of")];
  const button = figure.querySelector('[data-does="turn"]');
  let isTurned = false;
  const tell = startTelling(figure);
  button.addEventListener("click", () => {
    isTurned = !isTurned;
    for (const box of svg.querySelectorAll("[data-box]")) {
      const { there } = box.dataset;
      box.dataset.there = ["x", "y"].map((name) => box.getAttribute(name)).join(" ");
      const [x, y] = there.split(" ");
      box.setAttribute("x", x);
      box.setAttribute("y", y);
    }
    ways.forEach((way, n) => way.setAttribute("visibility", Boolean(n) === isTurned ? "inherit" : "hidden"));
    button.ariaPressed = String(isTurned);
    tell(told[Number(isTurned)], false);
  });
  figure.querySelector(".controls").hidden = false;
  tell(told[0], false);
};

// -- charts: drawn when the page was made; here they are copied, filled and highlighted ---------

const frameOf = (name) => byId(name + "-frame").content.firstElementChild;
const marksText = byId("diagrams") ? byId("diagrams").textContent.split("\n") : [];
const diagramOf = new Map(entries.map((entry, place) => [entry.key, marksText[place]]).filter(([, text]) => text));
// Marks hold numbers of ours and no word of a model.
const asMarks = (text) => document.importNode(new DOMParser().parseFromString(`<svg xmlns="http://www.w3.org/2000/svg">${text}</svg>`, "image/svg+xml").documentElement, true).childNodes;
// The reliability diagram of one confidence; a small one shows the plane alone.
function diagram(entry, large) {
  const svg = frameOf("diagram").cloneNode(true), [x0, x1, y0, y1] = svg.dataset.plot.split(" ").map(Number);
  svg.setAttribute("aria-label", `Share of right answers against confidence: ${nameOf(entry)}`);
  if (!large) svg.setAttribute("viewBox", `${x0 - 4} ${y1 - 4} ${x1 - x0 + 8} ${y0 - y1 + 8}`);
  svg.append(...asMarks(diagramOf.get(entry.key)));
  return svg;
}
// A curve of shares from 0 to `most` with a ring on it.
function curve(places, dot, { title, most, words = percent }) {
  const svg = frameOf("curve").cloneNode(true), [x0, x1, y0, y1] = svg.dataset.plot.split(" ").map(Number);
  const x = (v) => x0 + v * (x1 - x0), y = (v) => y0 + v / most * (y1 - y0);
  svg.setAttribute("aria-label", `${title} against share answered`);
  svg.querySelectorAll(".axis")[1].textContent = title;
  svg.querySelectorAll(".tick[text-anchor=end]").forEach((tick, place) => { tick.textContent = words(place / 4 * most); });
  svg.querySelector(".series").setAttribute("points", places.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" "));
  const ring = svg.querySelector(".ring");
  if (dot) { ring.setAttribute("cx", x(dot[0])); ring.setAttribute("cy", y(dot[1])); } else ring.remove();
  return svg;
}
// Whoever points at a curve or a row sees what belongs to it, and the rest faint.
function highlight(svg, key) {
  svg.classList.toggle("chosen", Boolean(key));
  for (const part of svg.querySelectorAll("[data-key]")) part.classList.toggle("lit", part.dataset.key === key);
}
function readyCharts() {
  for (const svg of document.querySelectorAll("svg.lines")) {
    if (!svg.querySelector("[data-key] .series")) continue;
    svg.addEventListener("pointerover", (event) => { const part = event.target.closest("[data-key]"); highlight(svg, part && part.dataset.key); });
    svg.addEventListener("pointerleave", () => highlight(svg, null));
  }
  for (const box of document.querySelectorAll("details.numbers")) {
    box.addEventListener("toggle", () => {
      const list = box.querySelector("ul"), told = box.closest("figure").querySelectorAll(".wide title");
      if (box.open && !list.firstChild) list.append(...[...new Set([...told].map((title) => title.textContent))].map((text) => made("li", text)));
    });
  }
}

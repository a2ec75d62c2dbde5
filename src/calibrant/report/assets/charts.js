// -- charts: drawn when the page was made; here they are copied, filled and highlighted ---------

const frameOf = (name) => byId(name + "-frame").content.firstElementChild;
const marksText = byId("diagrams") ? byId("diagrams").textContent.split("\n") : [];
const diagramOf = new Map(entries.map((entry, place) => [entry.key, marksText[place]]).filter(([, text]) => text));
// Drawings were escaped when the page was made; as XML they hold nothing that runs.
const asSvg = (text) => document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
const asMarks = (text) => asSvg(`<svg xmlns="http://www.w3.org/2000/svg">${text}</svg>`).childNodes;
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
function followPointer(svg) {
  if (!svg.querySelector("[data-key] .series")) return;
  svg.addEventListener("pointerover", (event) => { const part = event.target.closest("[data-key]"); highlight(svg, part && part.dataset.key); });
  svg.addEventListener("pointerleave", () => highlight(svg, null));
}
// Further charts are text until somebody opens them: nothing is read for a reader who does not ask.
function unfoldCharts(box) {
  for (const drawing of box.querySelectorAll("script.drawing")) {
    const holder = made("div", undefined, drawing.dataset.kind), svg = asSvg(drawing.textContent);
    holder.append(svg);
    followPointer(svg);
    drawing.replaceWith(holder);
  }
}
function readyCharts() {
  document.querySelectorAll("svg.lines").forEach(followPointer);
  for (const box of document.querySelectorAll("details.folded")) box.addEventListener("toggle", () => { if (box.open) unfoldCharts(box); });
  for (const box of document.querySelectorAll("details.numbers")) {
    box.addEventListener("toggle", () => {
      const list = box.querySelector("ul"), told = box.closest("figure").querySelectorAll(".wide title");
      if (box.open && !list.firstChild) list.append(...[...new Set([...told].map((title) => title.textContent))].map((text) => made("li", text)));
    });
  }
}

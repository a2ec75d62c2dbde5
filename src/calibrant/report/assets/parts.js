"use strict";
// What the page, the app and the labelling page share: elements, words, charts, tables, the panel.
// Model output reaches a page as text only: as text nodes, never as innerHTML.

const byId = (name) => document.getElementById(name);
const known = (value) => value !== null && value !== undefined;
function made(tag, content, kind) {
  const element = document.createElement(tag);
  element.append(...[content].flat().filter(known));
  if (kind) element.className = kind;
  return element;
}
function mark(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}
const button = (words, onclick, kind = "button") => Object.assign(made("button", words, kind), { type: "button", onclick });
const field = (words, control) => made("label", [words + " ", control]);
function choice(options, chosen, action) {
  const select = made("select", options.map(([value, words]) => new Option(words, value, false, value === chosen)));
  return Object.assign(select, { oninput: () => action(select.value) });
}
function searchBox(action) {
  const input = made("input", null, "filter");
  return Object.assign(input, { type: "search", oninput: () => action(input.value.toLowerCase()) });
}
function percent(share) {
  if (!known(share)) return "undefined";
  const value = share * 100, whole = Math.round(value);
  return `${Math.abs(value) < 10 && Math.abs(value - whole) > 0.05 ? value.toFixed(1) : whole} %`;
}
function showPanel(content) {
  const panel = byId("panel");
  panel.replaceChildren(content);
  if (!panel.open) panel.showModal();
  panel.scrollTop = 0;
}
document.addEventListener("click", async ({ target }) => {
  if (target.id === "panel") target.close();
  const copy = target.closest(".copy");
  if (!copy) return;
  const code = copy.parentElement.querySelector("code");
  try { await navigator.clipboard.writeText(code.textContent); copy.textContent = "Copied"; } catch {
    window.getSelection().selectAllChildren(code);
    copy.textContent = "Selected";
  }
});

// -- charts: drawn when the page was made -------------------------------------------------------

// Drawings were escaped when the page was made; as XML they hold nothing that runs.
const asSvg = (text) => document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
// A part of a chart that opens something, by mouse and by keyboard.
function opens(part, open, name) {
  Object.assign(part, { role: "button", ariaLabel: name || null, onclick: open });
  part.setAttribute("tabindex", "0");
  part.onkeydown = (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); } };
  part.closest("svg").role = "group";
}
// Whoever points at a curve or a row sees what belongs to it, and the rest faint.
function followPointer(svg) {
  if (!svg.querySelector("[data-key] .series")) return;
  const light = (key) => {
    svg.classList.toggle("chosen", Boolean(key));
    for (const part of svg.querySelectorAll("[data-key]")) part.classList.toggle("lit", part.dataset.key === key);
  };
  svg.onpointerover = ({ target }) => light(target.closest("[data-key]")?.dataset.key);
  svg.onpointerleave = () => light(null);
}
// Further charts are text until somebody opens them: nothing is read for a reader who does not ask.
function unfoldCharts(box) {
  for (const drawing of box.querySelectorAll("script.drawing")) {
    const svg = asSvg(drawing.textContent);
    followPointer(svg);
    drawing.replaceWith(made("div", svg, drawing.dataset.kind));
  }
}
document.addEventListener("toggle", ({ target: box }) => {
  if (box.open && box.matches("details.folded")) unfoldCharts(box);
  const list = box.open && box.matches("details.numbers") && box.querySelector("ul:empty");
  if (!list) return;
  const titles = [...box.closest("figure").querySelectorAll(".wide title")].map((title) => title.textContent);
  list.append(...[...new Set(titles)].map((text) => made("li", text)));
}, true);

// -- tables -------------------------------------------------------------------------------------

function cellValue(row, place) {
  const cell = row.cells[place];
  return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
}
function sortBy(table, header) {
  const place = header.cellIndex, up = header.ariaSort !== "ascending", body = table.tBodies[0];
  for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
  header.ariaSort = up ? "ascending" : "descending";
  const rows = [...body.rows].sort((a, b) => {
    const x = cellValue(a, place), y = cellValue(b, place);
    // Words (undefined, not a probability) stay below the numbers in both directions.
    if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
    return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
  });
  rows.forEach((row, place) => row.classList.toggle("beyond", place >= table.dataset.shown));
  body.append(...rows);
}
function explanation(cell) {
  const header = cell?.closest("table.sortable")?.tHead?.rows[0].cells[cell.cellIndex], term = header?.dataset.term && byId(header.dataset.term);
  if (!term) return null;
  const interval = cell.querySelector(".interval");
  const reading = interval ? `Here ${cell.firstChild.textContent}; the data are compatible with${interval.textContent.replace(/[[\]]/g, "").replace(",", " to")}.` : `Here: ${cell.textContent.trim()}.`;
  return { term, reading, row: cell.parentElement.cells[0].textContent.trim() };
}
document.addEventListener("click", ({ target }) => {
  const header = target.closest("button.sort") && target.closest("th"), more = target.closest("button.more[data-table]");
  if (header) sortBy(header.closest("table"), header);
  const found = !String(window.getSelection()) && explanation(target.closest("td"));
  if (found) {
    byId("explained").replaceChildren(made("p", `${found.row}. ${found.reading}`), ...found.term.cloneNode(true).childNodes);
    byId("explained").showPopover();
  }
  if (!more) return;
  const table = byId(more.dataset.table), whole = table.classList.toggle("whole");
  more.dataset.closed ??= more.textContent;
  more.ariaExpanded = String(whole);
  more.textContent = whole ? `Show the first ${table.dataset.shown} rows` : more.dataset.closed;
});
document.addEventListener("mouseover", ({ target }) => {
  const cell = target.closest("td"), found = cell && !cell.title && explanation(cell);
  if (found) { cell.title = `${found.term.textContent} ${found.reading}`; cell.classList.add("told"); }
});
document.addEventListener("input", ({ target }) => {
  if (!target.matches("input.filter[data-table]")) return;
  const words = target.value.toLowerCase(), table = byId(target.dataset.table);
  table.classList.toggle("filtered", words !== "");
  for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(words);
});

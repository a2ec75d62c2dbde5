"use strict";
// Model output reaches the page as text only: textContent, never innerHTML.
const byId = (name) => document.getElementById(name);
function made(tag, text, kind) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

// -- charts ----------------------------------------------------------------------------------

const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");
const specOf = (name) => JSON.parse(byId(name).textContent);
function dressed(spec, room) {
  // Colours of text follow the page, so that they keep their contrast in the dark.
  const style = getComputedStyle(document.documentElement);
  const soft = style.getPropertyValue("--soft").trim(), line = style.getPropertyValue("--line").trim();
  const words = { labelColor: soft, titleColor: soft };
  const config = spec.config = spec.config || {};
  config.axis = { ...config.axis, ...words, domainColor: line, tickColor: line, gridColor: line };
  config.legend = { ...config.legend, ...words };
  config.header = { ...config.header, ...words };
  config.text = { ...config.text, fill: soft };
  if (room < 560) {
    config.legend = { ...config.legend, orient: "bottom", columns: 1, labelLimit: room - 60 };
    narrow(spec, room);
  }
  return spec;
}
const yAxis = (part) => part.encoding && part.encoding.y && part.encoding.y.axis;
const hasNames = (part) => Boolean((yAxis(part) || {}).labelLimit) || (part.layer || []).some(hasNames);
function narrow(part, room) {
  // On a phone the plot gives way: long names keep two fifths of the width.
  const most = hasNames(part) ? room * 0.45 : room - 75;
  if (typeof part.width === "number" && part.width > most) part.width = Math.max(most, 120);
  for (const child of [...(part.layer || []), ...(part.vconcat || [])]) narrow(child, room);
  const axis = yAxis(part);
  if (axis && axis.labelLimit) axis.labelLimit = room * 0.4;
  const legend = part.encoding && part.encoding.color && part.encoding.color.legend;
  if (legend) { legend.orient = "bottom"; legend.columns = 1; legend.labelLimit = room - 60; }
}
async function drawChart(holder) {
  const name = holder.dataset.spec, room = Math.min(holder.closest("section").clientWidth, window.innerWidth - 40);
  const spec = dressed(specOf(name), room), controls = byId(name + "-controls");
  controls.replaceChildren();
  try {
    // ast: expressions are interpreted, so the page needs no permission to evaluate code.
    const found = await vegaEmbed(holder, spec, { ast: true, actions: false, renderer: "svg", bind: controls,
      tooltip: { theme: darkScheme.matches ? "dark" : "light" } });
    if (spec.usermeta && spec.usermeta.readout) followSignal(found.view, spec.usermeta.readout, byId(name + "-readout"));
    holder.dataset.drawn = "yes";
  } catch (error) {
    holder.textContent = "This chart could not be drawn: " + error.message;
  }
}
function followSignal(view, readout, holder) {
  const show = () => {
    const rows = readout.rows.filter((row) => row.place === Math.round(view.signal(readout.signal) * (row.count - 1)));
    holder.replaceChildren(plainTable(readout.columns, rows.map((row) => readout.columns.map((c) => row[c]))));
  };
  view.addSignalListener(readout.signal, show);
  show();
}
function plainTable(columns, rows) {
  const table = made("table"), head = made("tr"), body = made("tbody"), top = made("thead");
  head.append(...columns.map((name, place) => {
    const cell = made("th", name, rows.length && typeof rows[0][place] === "number" ? "" : "label");
    cell.scope = "col";
    return cell;
  }));
  top.append(head);
  for (const row of rows) {
    const line = made("tr");
    line.append(...row.map((value) => made("td", typeof value === "number" ? String(+value.toPrecision(4)) : value ?? "", typeof value === "number" ? "" : "label")));
    body.append(line);
  }
  table.append(top, body);
  return table;
}
function dataOf(part, found = []) {
  if (part.data && part.data.values && part.data.values.length) found.push(part.data.values);
  for (const child of [...(part.layer || []), ...(part.vconcat || [])]) dataOf(child, found);
  return [...new Map(found.map((rows) => [JSON.stringify(rows), rows])).values()];
}
function readyNumbers() {
  for (const box of document.querySelectorAll("details.numbers")) {
    box.addEventListener("toggle", () => {
      const holder = box.querySelector(".scroll");
      if (!box.open || holder.childElementCount) return;
      for (const rows of dataOf(specOf(box.dataset.spec))) {
        const columns = Object.keys(rows[0]);
        holder.append(plainTable(columns, rows.slice(0, 500).map((row) => columns.map((c) => row[c]))));
        if (rows.length > 500) holder.append(made("p", `The first 500 of ${rows.length} rows.`, "note"));
      }
    });
  }
}
function readyCharts() {
  const shown = () => document.querySelectorAll(".chart[data-spec]");
  for (const holder of shown()) if (!holder.closest("details:not([open])")) drawChart(holder);
  for (const box of document.querySelectorAll("details.later")) {
    box.addEventListener("toggle", () => {
      for (const holder of box.querySelectorAll(".chart:not([data-drawn])")) drawChart(holder);
    });
  }
  // What is folded is drawn when there is time, because print unfolds it and cannot wait.
  const drawNext = async () => {
    const next = document.querySelector("details.later .chart:not([data-drawn]):empty");
    if (next) await drawChart(next);
    if (next && next.dataset.drawn) (window.requestIdleCallback || setTimeout)(drawNext);
  };
  window.addEventListener("load", () => (window.requestIdleCallback || setTimeout)(drawNext));
  darkScheme.addEventListener("change", () => {
    for (const holder of document.querySelectorAll(".chart[data-drawn]")) drawChart(holder);
  });
}

// -- tables ----------------------------------------------------------------------------------

function cellValue(row, place) {
  const text = row.cells[place].textContent.trim();
  const number = parseFloat(text.replace(/,/g, ""));
  return Number.isNaN(number) ? text : number;
}
function foldRows(table) {
  [...table.tBodies[0].rows].forEach((row, place) => row.classList.toggle("beyond", place >= table.dataset.shown));
}
function sortBy(table, place, header) {
  const up = header.getAttribute("aria-sort") !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", up ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => {
    const x = cellValue(a, place), y = cellValue(b, place);
    // Words (undefined, not a probability) stay below the numbers in both directions.
    if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
    const order = x < y ? -1 : x > y ? 1 : 0;
    return up ? order : -order;
  });
  table.tBodies[0].append(...rows);
  foldRows(table);
}
function explanation(cell) {
  const table = cell.closest("table.sortable");
  if (!table || !table.tHead) return null;
  const header = table.tHead.rows[0].cells[cell.cellIndex], term = header && header.dataset.term && byId(header.dataset.term);
  if (!term) return null;
  const found = cell.textContent.match(/^(-?[\d.,]+) \[(-?[\d.,]+), (-?[\d.,]+)\]/);
  const reading = found ? `Here ${found[1]}; the interval says that ${found[2]} to ${found[3]} is compatible with the data.` : `Here: ${cell.textContent.trim()}.`;
  return { term, reading, row: cell.parentElement.cells[0].textContent.trim() };
}
function explainCell(cell) {
  const found = explanation(cell), box = byId("explained");
  if (!found) return;
  box.replaceChildren(made("p", `${found.row}. ${found.reading}`), ...[...found.term.childNodes].map((node) => node.cloneNode(true)));
  box.showPopover();
}
function readyTables() {
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((header, place) => {
      header.querySelector("button.sort").addEventListener("click", () => sortBy(table, place, header));
    });
    table.addEventListener("mouseover", (event) => {
      const cell = event.target.closest("td"), found = cell && !cell.title && explanation(cell);
      if (found) { cell.title = `${found.term.textContent} ${found.reading}`; cell.classList.add("told"); }
    });
    table.addEventListener("click", (event) => {
      const cell = event.target.closest("td");
      if (cell && !String(window.getSelection())) explainCell(cell);
    });
  }
  for (const input of document.querySelectorAll("input.filter[data-table]")) {
    const table = byId(input.dataset.table);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase();
      table.classList.toggle("filtered", words !== "");
      for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(words);
    });
  }
  for (const button of document.querySelectorAll("button.more[data-table]")) {
    const table = byId(button.dataset.table), closed = button.textContent;
    button.addEventListener("click", () => {
      const whole = table.classList.toggle("whole");
      button.setAttribute("aria-expanded", String(whole));
      button.textContent = whole ? `Show the first ${table.dataset.shown} rows` : closed;
    });
  }
}

// -- questions -------------------------------------------------------------------------------

function answerLine(answer) {
  const line = made("li", undefined, answer.correct === true ? "right" : answer.correct === false ? "wrong" : "open");
  const grade = answer.correct === true ? "right" : answer.correct === false ? "wrong" : "not graded";
  line.append(made("bdi", answer.answer), made("span", ` ${answer.draws} ${answer.draws === 1 ? "draw" : "draws"}, ${grade}`, "kind"));
  return line;
}
function questionBox(question) {
  const box = made("article"), title = made("h3");
  title.append(made("bdi", question.text), made("span", ` ${question.id}`, "kind"));
  box.append(title);
  for (const model of new Set(question.answers.map((a) => a.model))) {
    const head = made("h4"), list = made("ul");
    head.append(made("bdi", model));
    list.append(...question.answers.filter((a) => a.model === model).map(answerLine));
    box.append(head, list);
  }
  if (question.scores) {
    const scores = made("details"), lines = question.scores.split("; ");
    scores.append(made("summary", lines.length === 1 ? "1 confidence" : `${lines.length} confidences`, "kind"), made("p", question.scores, "note"));
    box.append(scores);
  }
  return box;
}
function modesOf(question) {
  const modes = new Map();
  for (const answer of question.answers) if (!modes.has(answer.model)) modes.set(answer.model, answer.correct);
  return [...modes.values()];
}
const KINDS = {
  all: () => true,
  right: (modes) => modes.length > 0 && modes.every((grade) => grade === true),
  wrong: (modes) => modes.length > 0 && modes.every((grade) => grade === false),
  split: (modes) => new Set(modes).size > 1,
};
function readyBrowser() {
  const holder = byId("questions");
  if (!holder) return;
  const data = JSON.parse(byId("questions-data").textContent);
  const searched = data.map((q) => [q.id, q.text, q.scores, ...q.answers.map((a) => a.answer)].join(" ").toLowerCase());
  const input = byId("questions-filter"), kind = byId("questions-kind"), count = byId("questions-count");
  const show = (most) => {
    const words = input.value.toLowerCase(), wanted = KINDS[kind.value];
    const found = data.filter((q, place) => searched[place].includes(words) && wanted(modesOf(q)));
    holder.replaceChildren(...found.slice(0, most).map(questionBox));
    count.textContent = `${found.length} of ${data.length} questions` + (found.length > most ? `, the first ${most} shown` : "");
    if (found.length <= most) return;
    const more = made("button", "Show more questions", "more");
    more.type = "button";
    more.addEventListener("click", () => {
      show(most + 50);
      // The button is gone; who uses the keyboard goes on at the first new question.
      holder.children[most].tabIndex = -1;
      holder.children[most].focus({ preventScroll: true });
    });
    holder.append(more);
  };
  input.addEventListener("input", () => show(10));
  kind.addEventListener("input", () => show(10));
  show(10);
}
// Paper cannot be unfolded.
window.addEventListener("beforeprint", () => { for (const box of document.querySelectorAll("details.folded")) box.open = true; });
readyCharts();
readyNumbers();
readyTables();
readyBrowser();

// -- all confidences: small multiples, numbers, detail panels ---------------------------------

const view = { sort: "gap", words: "", method: "", scope: "whole", shown: 12 };
const SORTS = [["gap", "smallest gap"], ["-gap", "largest gap"], ["ece", "calibration error"], ["auroc", "ranking (AUROC)"], ["accuracy", "share right"], ["name", "name"]];
function sortValue(entry, key) {
  if (key === "name") return nameOf(entry).toLowerCase();
  if (key === "gap") return Math.abs(gapOf(entry) ?? Infinity);
  if (key === "-gap") return -Math.abs(gapOf(entry) ?? 0);
  const found = entry.metrics[key];
  const value = found && known(found[0]) ? found[0] : Infinity;
  return key === "ece" ? value : -value;
}
function chosenEntries() {
  const grouped = entries.some((entry) => entry.group), whole = entries.some((entry) => !entry.group);
  const fits = (entry) => nameOf(entry).toLowerCase().includes(view.words)
    && (!view.method || entry.method === view.method)
    && (!(grouped && whole) || (view.scope === "groups" ? entry.group : !entry.group));
  const order = (a, b) => { const x = sortValue(a, view.sort), y = sortValue(b, view.sort); return x < y ? -1 : x > y ? 1 : 0; };
  return entries.filter(fits).sort(order);
}
function exploreTools(redraw) {
  const parts = [field("Sort by", choice(SORTS, view.sort, (value) => { view.sort = value; redraw(); }))];
  const methods = [...new Set(entries.map((entry) => entry.method))];
  if (methods.length > 1) parts.push(field("Confidence", choice([["", "all"], ...methods.map((m) => [m, methodName(m)])], view.method, (value) => { view.method = value; redraw(); })));
  if (entries.some((e) => e.group) && entries.some((e) => !e.group))
    parts.push(field("Show", choice([["whole", "whole models"], ["groups", "groups"]], view.scope, (value) => { view.scope = value; redraw(); })));
  if (entries.length > 8) parts.push(field("Find", searchBox((words) => { view.words = words; redraw(); })));
  return parts;
}
// Only what is near the screen is drawn: hundreds of diagrams stay as quick as a dozen.
const nearScreen = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    const holder = target.querySelector(".holder");
    if (isIntersecting) drawIn(target);
    if (!isIntersecting && entries.length > 60) holder.replaceChildren();
  }
}, { rootMargin: "400px" });
function drawIn(box) {
  const holder = box.querySelector(".holder");
  if (!holder.firstChild) holder.append(diagram(byKey.get(box.dataset.key), false));
}
function multiple(entry) {
  const box = button(undefined, () => openPanel(entry.key), "multiple"), holder = made("span", undefined, "holder space");
  const gap = gapOf(entry), what = made("span", undefined, "what");
  what.append(made("b", known(gap) ? inPoints(gap) : "\u2013"), " points");
  box.dataset.key = entry.key;
  box.append(holder, named("span", nameOf(entry), "who"), what);
  nearScreen.observe(box);
  return box;
}
function showMultiples() {
  const holder = byId("multiples");
  if (!holder) return;
  nearScreen.disconnect();
  const found = chosenEntries().filter((entry) => diagramOf.has(entry.key));
  holder.replaceChildren(...found.slice(0, view.shown).map(multiple));
  const more = byId("multiples-more") || made("p");
  more.id = "multiples-more";
  more.replaceChildren();
  if (found.length > view.shown) more.append(button(`Show all ${found.length}`, () => { view.shown = Infinity; showMultiples(); }, "more"));
  holder.after(more);
}

// -- the table of numbers --------------------------------------------------------------------

// The list of metrics comes with the page: those of a group that are not among the first unfold.
const METRICS = byId("metrics") ? JSON.parse(byId("metrics").textContent) : [];
const FIRST = ["accuracy", "mean_confidence", "confidence_gap", "ece", "auroc"];
const metric = ({ name, title, unit }) => name === "confidence_gap"
  ? { title, of: (entry) => entry.metrics[name] || [gapOf(entry), null, null], points: true }
  : { title, of: (entry) => entry.metrics[name], percent: unit === "share" };
const ofGroups = (...groups) => METRICS.filter((one) => groups.includes(one.group) && !FIRST.includes(one.name)).map(metric);
const proof = (name) => ({ title: name, of: (entry) => entry.evidence[name], p: name === "p" || name === "p corrected" });
const COLUMNS = [
  ["", FIRST.map((name) => METRICS.find((one) => one.name === name)).filter(Boolean).map(metric)],
  ["calibration", ofGroups("calibration", "score")],
  ["ranking", ofGroups("ranking")],
  ["evidence", [{ title: "n", of: (entry) => [entry.n, null, null], whole: true }, proof("ECE if calibrated"), proof("p"), proof("p corrected"), proof("error rate"), proof("passive floor"), proof("active floor"), proof("L")]],
];
const unfolded = new Set([""]);
let numberSort = null;
function numberText(value, column) {
  if (!known(value)) return "";
  if (column.points) return inPoints(value);
  if (column.percent) return percent(value);
  if (column.whole) return value.toLocaleString("en");
  if (column.p) return value <= 1e-10 ? "<1e-10" : value >= 0.001 ? value.toFixed(3) : value.toExponential(0);
  return value.toFixed(3);
}
function numberCell(entry, column) {
  const cell = made("td"), found = column.of(entry);
  if (!found || !known(found[0])) { cell.textContent = found ? "undefined" : "not a probability"; cell.className = "note"; return cell; }
  cell.textContent = numberText(found[0], column);
  if (known(found[1]) && known(found[2])) cell.append(made("span", ` [${numberText(found[1], column)}, ${numberText(found[2], column)}]`, "interval"));
  return cell;
}
function shownColumns() { return COLUMNS.filter(([name]) => unfolded.has(name)).flatMap(([, columns]) => columns); }
function termOf(title) { return byId("term-" + title.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "-")); }
function headCell(title, sortBy, label) {
  const cell = made("th", undefined, label ? "label" : ""), sort = button(title, sortBy, "sort");
  cell.scope = "col";
  cell.append(sort);
  const term = !label && termOf(title);
  if (term) {
    const ask = made("button", "?", "term");
    ask.type = "button";
    ask.setAttribute("popovertarget", term.id);
    ask.setAttribute("aria-label", `What is ${title}?`);
    cell.append(ask);
  }
  if (numberSort && numberSort.title === title) cell.setAttribute("aria-sort", numberSort.up ? "ascending" : "descending");
  return cell;
}
function sortNumbers(title, of) {
  numberSort = { title, of, up: !(numberSort && numberSort.title === title && numberSort.up) };
  showNumbers();
}
function numberRow(entry, columns) {
  const row = made("tr", undefined, "open-row"), name = made("td", undefined, "label"), verdict = made("td");
  name.append(button(nameOf(entry), () => openPanel(entry.key), "open"));
  verdict.append(made("span", toneWords(entry.tone), "tag " + entry.tone));
  row.append(name, verdict, ...columns.map((column) => numberCell(entry, column)));
  row.addEventListener("click", (event) => { if (!event.target.closest("button") && !String(window.getSelection())) openPanel(entry.key); });
  return row;
}
function showNumbers() {
  const table = byId("numbers-table"), columns = shownColumns();
  let found = chosenEntries();
  if (numberSort) {
    const value = (entry) => numberSort.of(entry);
    found = [...found].sort((a, b) => {
      const x = value(a), y = value(b);
      // Words (undefined, not a probability) stay below the numbers in both directions.
      if (!known(x) || !known(y)) return known(x) ? -1 : known(y) ? 1 : 0;
      return (x < y ? -1 : x > y ? 1 : 0) * (numberSort.up ? 1 : -1);
    });
  }
  const head = made("thead"), line = made("tr"), body = made("tbody");
  line.append(headCell(HAS.method && HAS.model ? "model / method" : HAS.method ? "method" : "model", () => sortNumbers("name", nameOf), true), headCell("verdict", () => sortNumbers("verdict", (entry) => entry.tone)));
  line.append(...columns.map((column) => headCell(column.title, () => sortNumbers(column.title, (entry) => { const cell = column.of(entry); return cell ? cell[0] : null; }))));
  head.append(line);
  body.append(...found.map((entry) => numberRow(entry, columns)));
  table.replaceChildren(head, body);
  byId("numbers-note").textContent = `${found.length} of ${entries.length}. Accuracy and confidence in percent, gap in points (confidence minus accuracy); the rest as shares of 1. Brackets: intervals.`;
}
function numbersTools() {
  const groups = COLUMNS.slice(1).map(([name]) => {
    const toggle = button(name, () => {
      if (unfolded.has(name)) unfolded.delete(name); else unfolded.add(name);
      toggle.setAttribute("aria-pressed", String(unfolded.has(name)));
      showNumbers();
    });
    toggle.setAttribute("aria-pressed", "false");
    return toggle;
  });
  return [made("span", "More columns:"), ...groups];
}

// -- one confidence --------------------------------------------------------------------------

function hashOf(entry) {
  const query = new URLSearchParams({ model: entry.model, method: entry.method });
  if (entry.group) query.set("group", entry.group);
  return "#" + query.toString();
}
function entryOfHash() {
  const query = new URLSearchParams(location.hash.slice(1));
  if (!query.has("model") && !query.has("method")) return null;
  const fits = (name) => (entry) => !query.has(name) || entry[name] === query.get(name);
  const found = entries.filter(fits("model")).filter(fits("method"));
  return found.find((entry) => entry.group === (query.get("group") || "")) || found[0] || null;
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
function panelNumbers(entry) {
  const table = made("table");
  for (const [group, columns] of COLUMNS) {
    const body = made("tbody");
    const heading = made("tr"), cell = made("th", group || "in short", "label");
    cell.colSpan = 2;
    cell.scope = "rowgroup";
    heading.append(cell);
    body.append(heading);
    for (const column of columns) {
      const row = made("tr"), title = made("th", column.title, "label");
      title.scope = "row";
      title.style.fontWeight = "400";
      row.append(title, numberCell(entry, column));
      body.append(row);
    }
    table.append(body);
  }
  return table;
}
function panelBody(entry) {
  const box = made("div", undefined, "panel-in"), top = made("div", undefined, "panel-top"), title = made("h2", nameOf(entry));
  const list = chosenEntries(), place = list.indexOf(entry);
  title.id = "panel-title";
  const step = (words, by) => { const b = button(words, () => openPanel(list[place + by].key)); b.disabled = !list[place + by]; return b; };
  if (list.length > 1 && place >= 0) top.append(step("\u2190 Previous", -1), step("Next \u2192", 1));
  const close = button("Close", () => byId("panel").close());
  close.autofocus = true;
  top.append(close);
  box.append(top, title);
  if (entry.words) box.append(made("p", methodName(entry.method), "note"));
  box.append(made("p", toneWords(entry.tone), "badge " + entry.tone));
  const claims = made("ul", undefined, "claims");
  claims.append(...entry.claims.map(([tone, text]) => made("li", text, tone)));
  box.append(claims);
  if (diagramOf.has(entry.key)) { const svg = diagram(entry, true); linkCells(svg, entry); box.append(svg); }
  if (entry.cuts.length) { box.append(made("h3", "Try a threshold"), thresholdBox(entry, false)); }
  box.append(made("h3", "Numbers"), panelNumbers(entry));
  if (entry.notes.length) box.append(made("h3", "Notes"), ...entry.notes.map((note) => made("p", note, "note")));
  return box;
}
function openPanel(key) {
  const entry = byKey.get(key), panel = byId("panel");
  if (!entry) return;
  panel.replaceChildren(panelBody(entry));
  if (!panel.open) panel.showModal();
  panel.scrollTop = 0;
  history.replaceState(null, "", hashOf(entry));
}
function followHash() {
  const entry = entries.length ? entryOfHash() : null;
  if (entry) { openPanel(entry.key); return; }
  let target = null;
  try { target = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1))); } catch { target = null; }
  if (target && target.tagName === "DETAILS") { target.open = true; target.scrollIntoView(); }
}
function readyExplore() {
  const panel = byId("panel");
  panel.addEventListener("close", () => history.replaceState(null, "", location.pathname + location.search));
  panel.addEventListener("click", (event) => { if (event.target === panel) panel.close(); });
  for (const row of document.querySelectorAll("svg [data-key]")) {
    if (!byKey.has(row.dataset.key)) continue;
    row.setAttribute("tabindex", "0");
    row.setAttribute("role", "button");
    row.addEventListener("click", () => openPanel(row.dataset.key));
    row.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); openPanel(row.dataset.key); } });
  }
  for (const svg of document.querySelectorAll("svg.picture")) if (svg.querySelector("[data-key][role]")) svg.setAttribute("role", "group");
  window.addEventListener("hashchange", followHash);
  for (const link of document.querySelectorAll(".outline a, .to-part")) link.addEventListener("click", () => { const part = byId(link.hash.slice(1)); if (part && part.tagName === "DETAILS") part.open = true; });
  if (!entries.length) return;
  if (entries.length === 1) document.querySelectorAll(".hero-picture svg").forEach((svg) => linkCells(svg, entries[0]));
  const redraw = () => { showMultiples(); if (byId("numbers").open) showNumbers(); };
  byId("scale-tools").append(...exploreTools(redraw));
  byId("numbers-tools").append(...numbersTools());
  byId("numbers").addEventListener("toggle", () => { if (byId("numbers").open) showNumbers(); });
  showMultiples();
}

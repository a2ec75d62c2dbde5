// -- the confidences of the page and their drawings ---------------------------------------------

const dataOf = (name) => JSON.parse(byId(name)?.textContent || "[]");
const inPoints = (gap) => { const size = Math.abs(gap) * 100; return (gap < 0 ? "\u2212" : "+") + (size >= 0.05 && size < 1 ? size.toFixed(1) : size.toFixed(0)); };
const SIGNS = { over_confident: "\u25B2", under_confident: "\u25BC", miscalibrated: "\u25C6", calibrated: "\u2713", undecided: "?", not_tested: "\u00b7" };
const toneWords = (tone) => `${SIGNS[tone] || "\u00b7"} ${tone.replace(/_/g, "-")}`;
const entries = dataOf("entries");
const byKey = new Map(entries.map((entry) => [entry.key, entry]));
const several = (name) => new Set(entries.map((entry) => entry[name])).size > 1;
const HAS = { model: several("model"), method: several("method") };
const methodName = ({ method, words }) => words ? `${method} (${words})` : method;
const gapOf = ({ metrics }) => metrics.confidence_gap ? metrics.confidence_gap[0] : metrics.mean_confidence ? metrics.mean_confidence[0] - metrics.accuracy[0] : null;
function nameOf(entry) {
  const names = [HAS.model || !HAS.method ? entry.model : "", HAS.method ? entry.method : "", entry.group];
  return names.filter(Boolean).join(" / ") || entry.model;
}
// The marks of an entry stand in its line.
const marksText = byId("diagrams")?.textContent.split("\n") || [];
const diagramOf = new Map(entries.map((entry, place) => [entry.key, marksText[place]]).filter(([, text]) => text));
function framed(name) {
  const svg = byId(name + "-frame").content.firstElementChild.cloneNode(true);
  return [svg, ...svg.dataset.plot.split(" ").map(Number)];
}
// The reliability diagram of one confidence; a small one shows the plane alone.
function diagram(entry, large) {
  const [svg, x0, x1, y0, y1] = framed("diagram");
  svg.ariaLabel = `Share of right answers against confidence: ${nameOf(entry)}`;
  if (!large) svg.setAttribute("viewBox", `${x0 - 4} ${y1 - 4} ${x1 - x0 + 8} ${y0 - y1 + 8}`);
  svg.append(...asSvg(`<svg xmlns="http://www.w3.org/2000/svg">${diagramOf.get(entry.key)}</svg>`).childNodes);
  return svg;
}
// A curve of shares from 0 to `most` with a ring on it.
function curve(places, dot, { title, most, words = percent }) {
  const [svg, x0, x1, y0, y1] = framed("curve"), ring = svg.querySelector(".ring");
  const x = (v) => x0 + v * (x1 - x0), y = (v) => y0 + v / most * (y1 - y0);
  svg.ariaLabel = `${title} against share answered`;
  svg.querySelectorAll(".axis")[1].textContent = title;
  svg.querySelectorAll(".tick[text-anchor=end]").forEach((tick, place) => { tick.textContent = words(place / 4 * most); });
  svg.querySelector(".series").setAttribute("points", places.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" "));
  if (dot) { ring.setAttribute("cx", x(dot[0])); ring.setAttribute("cy", y(dot[1])); } else ring.remove();
  return svg;
}

// -- all confidences: small multiples ------------------------------------------------------------

const view = { sort: "gap", words: "", method: "", scope: "whole", shown: 12 };
const SORTS = [["gap", "smallest gap"], ["-gap", "largest gap"], ["ece", "calibration error"], ["auroc", "ranking (AUROC)"], ["accuracy", "share right"], ["name", "name"]];
const grouped = entries.some((entry) => entry.group) && entries.some((entry) => !entry.group);
function sortValue(entry, key) {
  if (key === "name") return nameOf(entry).toLowerCase();
  if (key === "gap") return Math.abs(gapOf(entry) ?? Infinity);
  if (key === "-gap") return -Math.abs(gapOf(entry) ?? 0);
  const value = entry.metrics[key]?.[0] ?? Infinity;
  return key === "ece" ? value : -value;
}
function chosenEntries() {
  const fits = (entry) => nameOf(entry).toLowerCase().includes(view.words)
    && (!view.method || entry.method === view.method)
    && (!grouped || (view.scope === "groups" ? entry.group : !entry.group));
  const order = (a, b) => { const x = sortValue(a, view.sort), y = sortValue(b, view.sort); return x < y ? -1 : x > y ? 1 : 0; };
  return entries.filter(fits).sort(order);
}
function exploreTools(redraw) {
  const set = (name) => (value) => { view[name] = value; redraw(); };
  const methods = new Map(entries.map((entry) => [entry.method, methodName(entry)]));
  return [
    field("Sort by", choice(SORTS, view.sort, set("sort"))),
    HAS.method ? field("Confidence", choice([["", "all"], ...methods], view.method, set("method"))) : null,
    grouped ? field("Show", choice([["whole", "whole models"], ["groups", "groups"]], view.scope, set("scope"))) : null,
    entries.length > 8 ? field("Find", searchBox(set("words"))) : null,
  ].filter(known);
}
// Only what is near the screen is drawn: hundreds of diagrams stay as quick as a dozen.
const nearScreen = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    if (isIntersecting) drawIn(target);
    else if (entries.length > 60) target.firstChild.replaceChildren();
  }
}, { rootMargin: "400px" });
function drawIn(box) {
  const holder = box.firstChild;
  if (!holder.firstChild) holder.append(diagram(byKey.get(box.dataset.key), false));
}
function multiple(entry) {
  const gap = gapOf(entry), what = [made("b", known(gap) ? inPoints(gap) : "\u2013"), " points"];
  // A long name may break after a slash, a hyphen or an underscore.
  const name = nameOf(entry).split(/(?<=[/_-])/).flatMap((part) => [part, made("wbr")]);
  const parts = [made("span", null, "space"), made("span", name, "who"), made("span", what, "what")];
  const box = button(parts, () => openPanel(entry.key), "multiple");
  box.dataset.key = entry.key;
  nearScreen.observe(box);
  return box;
}
function showMultiples() {
  nearScreen.disconnect();
  const found = chosenEntries().filter((entry) => diagramOf.has(entry.key));
  byId("multiples").replaceChildren(...found.slice(0, view.shown).map(multiple));
  const more = button(`Show all ${found.length}`, () => { view.shown = Infinity; showMultiples(); }, "more");
  byId("multiples-more").replaceChildren(...(found.length > view.shown ? [more] : []));
}

// -- the table of numbers --------------------------------------------------------------------

// The list of metrics comes with the page: those of a group that are not among the first unfold.
const METRICS = dataOf("metrics");
const FIRST = ["accuracy", "mean_confidence", "confidence_gap", "ece", "auroc"];
const metric = ({ name, title, unit }) => name === "confidence_gap"
  ? { title, of: (entry) => entry.metrics[name] || [gapOf(entry), null, null], words: inPoints }
  : { title, of: (entry) => entry.metrics[name], words: unit === "share" ? percent : undefined };
const ofGroups = (...groups) => METRICS.filter((one) => groups.includes(one.group) && !FIRST.includes(one.name)).map(metric);
const threeDigits = (value) => value.toFixed(3);
const pValue = (value) => value <= 1e-10 ? "<1e-10" : value >= 0.001 ? threeDigits(value) : value.toExponential(0);
const EVIDENCE = { "ECE if calibrated": threeDigits, "p": pValue, "p corrected": pValue, "error rate": threeDigits,
  "passive floor": threeDigits, "active floor": threeDigits, "L": threeDigits };
const COLUMNS = [
  ["", FIRST.flatMap((name) => METRICS.filter((one) => one.name === name)).map(metric)],
  ["calibration", ofGroups("calibration", "score")],
  ["ranking", ofGroups("ranking")],
  ["evidence", [{ title: "n", of: (entry) => [entry.n, null, null], words: (n) => n.toLocaleString("en") },
    ...Object.entries(EVIDENCE).map(([title, words]) => ({ title, of: (entry) => entry.evidence[title], words }))]],
];
const unfolded = new Set([""]);
function numberCell(entry, { of, words = threeDigits }) {
  const [value, low, high] = of(entry) || [];
  if (!known(value)) return made("td", of(entry) ? "undefined" : "not a probability", "note");
  const interval = known(low) && known(high) ? made("span", ` [${words(low)}, ${words(high)}]`, "interval") : null;
  const cell = made("td", [words(value), interval]);
  cell.dataset.value = value;
  return cell;
}
function head(words, kind, scope = "col") { return Object.assign(made("th", words, kind), { scope }); }
function headCell(title, kind) {
  const cell = head(button(title, null, "sort"), kind);
  const term = byId("term-" + title.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "-"));
  if (!term || kind) return cell;
  const question = Object.assign(button("?", null, "term"), { popoverTargetElement: term, ariaLabel: `What is ${title}?` });
  cell.append(question);
  return cell;
}
function numberRow(entry, columns) {
  const name = made("td", button(nameOf(entry), () => openPanel(entry.key), "open"), "label");
  const verdict = made("td", made("span", toneWords(entry.tone), "tag " + entry.tone));
  const row = made("tr", [name, verdict, ...columns.map((column) => numberCell(entry, column))], "open-row");
  row.onclick = (event) => { if (!event.target.closest("button") && !String(window.getSelection())) openPanel(entry.key); };
  return row;
}
function showNumbers() {
  const table = byId("numbers-table"), before = table.querySelector("[aria-sort]"), found = chosenEntries();
  const columns = COLUMNS.filter(([name]) => unfolded.has(name)).flatMap(([, some]) => some);
  const subject = HAS.method && HAS.model ? "model / method" : HAS.method ? "method" : "model";
  const heads = [headCell(subject, "label"), headCell("verdict"), ...columns.map(({ title }) => headCell(title))];
  table.replaceChildren(made("thead", made("tr", heads)), made("tbody", found.map((entry) => numberRow(entry, columns))));
  const again = before && heads.find((cell) => cell.textContent === before.textContent);
  if (again) {
    again.ariaSort = before.ariaSort === "descending" ? "ascending" : null;
    sortBy(table, again);
  }
  byId("numbers-note").textContent = `${found.length} of ${entries.length}. Accuracy and confidence in percent, gap in points (confidence minus accuracy); the rest as shares of 1. Brackets: intervals.`;
}
function numbersTools() {
  return COLUMNS.slice(1).map(([name]) => {
    const toggle = button(name, () => {
      if (!unfolded.delete(name)) unfolded.add(name);
      toggle.ariaPressed = String(unfolded.has(name));
      showNumbers();
    });
    return Object.assign(toggle, { ariaPressed: "false" });
  });
}

// -- one confidence --------------------------------------------------------------------------

function hashOf(entry) {
  const query = new URLSearchParams({ model: entry.model, method: entry.method });
  if (entry.group) query.set("group", entry.group);
  return "#" + query;
}
function entryOfHash() {
  const query = new URLSearchParams(location.hash.slice(1));
  if (!query.has("model") && !query.has("method")) return null;
  const fits = (entry) => ["model", "method"].every((name) => !query.has(name) || entry[name] === query.get(name));
  const found = entries.filter(fits);
  return found.find((entry) => entry.group === (query.get("group") || "")) || found[0] || null;
}
function panelNumbers(entry) {
  return made("table", COLUMNS.map(([group, columns]) => {
    const heading = Object.assign(head(group || "in short", "label", "rowgroup"), { colSpan: 2 });
    const rows = columns.map((column) => made("tr", [head(column.title, "label quiet", "row"), numberCell(entry, column)]));
    return made("tbody", [made("tr", heading), ...rows]);
  }));
}
function panelBody(entry) {
  const list = chosenEntries(), place = list.indexOf(entry), drawing = diagramOf.has(entry.key) ? diagram(entry, true) : null;
  const step = (words, by) => Object.assign(button(words, () => openPanel(list[place + by].key)), { disabled: !list[place + by] });
  const steps = list.length > 1 && place >= 0 ? [step("\u2190 Previous", -1), step("Next \u2192", 1)] : [];
  const close = Object.assign(button("Close", () => byId("panel").close()), { autofocus: true });
  if (drawing) linkCells(drawing, entry);
  return made("div", [
    made("div", [...steps, close], "panel-top"),
    Object.assign(made("h2", nameOf(entry)), { id: "panel-title" }),
    entry.words ? made("p", methodName(entry), "note") : null,
    made("p", toneWords(entry.tone), "badge " + entry.tone),
    made("ul", entry.claims.map(([tone, text]) => made("li", text, tone)), "claims"),
    drawing,
    ...(entry.cuts.length ? [made("h3", "Try a threshold"), thresholdBox(entry, false)] : []),
    made("h3", "Numbers"), panelNumbers(entry),
    entry.notes.length ? made("h3", "Notes") : null, ...entry.notes.map((note) => made("p", note, "note")),
  ], "panel-in");
}
function openPanel(key) {
  const entry = byKey.get(key);
  if (!entry) return;
  showPanel(panelBody(entry));
  history.replaceState(null, "", hashOf(entry));
}
function openPart(id, scroll) {
  const part = byId(id);
  if (part?.tagName !== "DETAILS") return;
  part.open = true;
  if (scroll) part.scrollIntoView();
}
function followHash() {
  const entry = entryOfHash();
  if (entry) { openPanel(entry.key); return; }
  try { openPart(decodeURIComponent(location.hash.slice(1)), true); } catch { /* No part is called so. */ }
}
function readyExplore() {
  byId("panel").addEventListener("close", () => history.replaceState(null, "", location.pathname + location.search));
  for (const row of document.querySelectorAll("svg [data-key]"))
    if (byKey.has(row.dataset.key)) opens(row, () => openPanel(row.dataset.key));
  window.addEventListener("hashchange", followHash);
  for (const link of document.querySelectorAll(".outline a, .to-part")) link.addEventListener("click", () => openPart(link.hash.slice(1)));
  if (!entries.length) return;
  if (entries.length === 1) document.querySelectorAll(".hero-picture svg").forEach((svg) => linkCells(svg, entries[0]));
  const redraw = () => { showMultiples(); if (byId("numbers").open) showNumbers(); };
  byId("scale-tools").append(...exploreTools(redraw));
  byId("numbers-tools").append("More columns:", ...numbersTools());
  byId("numbers").addEventListener("toggle", () => { if (byId("numbers").open) showNumbers(); });
  showMultiples();
}

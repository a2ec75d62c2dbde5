// -- the app: the address holds the state, the server makes the parts, clicks change the address --

const main = byId("main");
const address = () => new URLSearchParams(location.search);
const TAB = () => address().get("tab") || "overview";
const SHARED = ["models", "model", "method", "group", "span", "grade", "split", "words", "sort"];
// What changes rows alone leaves the rest of a tab as it is.
const OF_ROWS = new Set(["span", "grade", "split", "words", "sort", "start"]);
let turn = 0, shownTab = "";
const send = (path, body) => fetch(path, { method: "POST", headers: { "X-Calibrant": "1" }, body });
function query(extra = {}) {
  const found = address();
  for (const [name, value] of Object.entries(extra)) if (value) found.set(name, value);
  return found;
}
function parsed(html) {
  const holder = made("template");
  holder.innerHTML = html;
  return holder.content;
}
function go(changes, { replace = false } = {}) {
  const found = address(), names = Object.keys(changes);
  for (const name of [...names, "start"]) found.delete(name);
  for (const name of names)
    for (const one of [changes[name]].flat()) if (known(one) && one !== "") found.append(name, one);
  if ("?" + found === location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", "?" + found);
  if (names.every((name) => OF_ROWS.has(name)) && main.querySelector("[data-rows]")) { marked(); loadRows(); } else show();
}
function showTabs() {
  const kept = new URLSearchParams([...address()].filter(([name]) => SHARED.includes(name) || name.includes(".")));
  for (const link of document.querySelectorAll(".tabs a")) {
    kept.set("tab", link.dataset.tab);
    link.href = "?" + kept;
    link.ariaCurrent = link.dataset.tab === TAB() ? "page" : null;
    if (link.ariaCurrent) link.scrollIntoView({ block: "nearest", inline: "center" });
  }
}
async function show() {
  const own = ++turn, tab = TAB(), began = Date.now();
  showTabs();
  loadPicker();
  main.setAttribute("aria-busy", "true");
  for (;;) {
    const answer = await fetch(`/api/tab/${encodeURIComponent(tab)}?${query()}`).catch(() => null);
    if (own !== turn) return;
    if (!answer) { trouble("The program has stopped: start `calibrant view` again."); return; }
    if (answer.status !== 202) {
      const text = await answer.text();
      if (own !== turn) return;
      if (answer.ok) arrive(tab, text); else trouble(text);
      return;
    }
    const { words } = await answer.json();
    if (own !== turn) return;
    working(tab, words, Math.round((Date.now() - began) / 1000));
    await new Promise((next) => setTimeout(next, 300));
  }
}
function trouble(text) { main.removeAttribute("aria-busy"); main.replaceChildren(made("p", text, "trouble")); }
function working(tab, words, seconds) {
  let box = main.querySelector(".working");
  if (!box || !box.querySelector("progress")) {
    const told = Object.assign(made("p"), { role: "status" }), bar = Object.assign(made("progress"), { ariaLabel: words });
    box = made("div", [told, bar, button("Stop", () => send(`/api/cancel/${tab}?${query()}`))], "working");
    main.replaceChildren(box);
  }
  box.firstChild.textContent = `${words} … ${seconds} s`;
}
function arrive(tab, text) {
  const jumped = tab !== shownTab;
  main.replaceChildren(parsed(text));
  // Who asked for no tab gets the one that this table answers.
  const instead = main.querySelector("[data-instead]");
  if (instead && !address().get("tab")) { go({ tab: instead.dataset.instead }, { replace: true }); return; }
  main.removeAttribute("aria-busy");
  shownTab = tab;
  const command = main.querySelector("template[data-command]");
  if (command) byId("command").replaceChildren(command.content);
  byId("command-button").hidden = !command;
  saveMenu(tab);
  main.querySelectorAll("svg.lines").forEach(followPointer);
  linkCharts(main);
  for (const box of main.querySelectorAll("details.folded")) box.addEventListener("toggle", () => linkCharts(box), { once: true });
  marked();
  readyDrag();
  readyMeaning();
  markFocus(inFocus());
  loadRows();
  if (jumped) window.scrollTo(0, 0);
}
function saveMenu(tab) {
  const offered = tab === "questions" ? [["rows.csv", "These rows (CSV)"], ["corrected.csv", "Table with corrected grades (CSV)"]]
    : [["page.html", "Page (HTML)"], ["result.json", "Result (JSON)"], ["chart.svg", "Chart (SVG)"], ["chart.png", "Chart (PNG)"],
       ...(tab === "decide" ? [["policy.json", "Policy (JSON)"]] : ["mend", "judge"].includes(tab) ? [["policy.json", "Map (JSON)"]] : []), ...(tab === "judge" ? [] : [["rows.csv", "Rows (CSV)"]])];
  byId("save-menu").replaceChildren(...offered.map(([download, words]) => Object.assign(made("a", words), { download, href: `/save/${download}?${query({ tab })}` })));
  for (const link of main.querySelectorAll("a[data-save]")) link.href = `${new URL(link.href).pathname}?${query({ tab })}`;
}

// -- the picker ------------------------------------------------------------------------------

let pickerFor = null;
async function loadPicker() {
  const state = address(), key = ["models", "model", "method", "group"].map((name) => state.getAll(name)).join("|"), focus = inFocus();
  if (pickerFor === key) { markFocus(focus); return; }
  const answer = await fetch("/api/picker?" + query());
  if (!answer.ok) return;
  const box = byId("picker"), active = document.activeElement && box.contains(document.activeElement) ? document.activeElement : null;
  const again = active && (active.dataset.model ? `[data-model="${CSS.escape(active.dataset.model)}"]` : active.name && `[name="${active.name}"]` + (active.type === "checkbox" || active.type === "radio" ? `[value="${CSS.escape(active.value)}"]` : ""));
  // A phone shows the result first, and what is looked at when asked.
  const wasOpen = box.querySelector("details")?.open ?? !matchMedia("(max-width: 40rem)").matches;
  box.replaceChildren(parsed(await answer.text()));
  for (const fold of box.querySelectorAll("details")) fold.open = wasOpen;
  pickerFor = key;
  const about = box.querySelector("template[data-about]");
  byId("about").replaceChildren(about.content);
  about.remove();
  if (again) box.querySelector(again)?.focus();
  document.body.classList.toggle("alone", !box.firstElementChild);
  markFocus(focus);
}
const inFocus = () => main.querySelector("[data-focus]")?.dataset.focus || main.querySelector("[data-rows]")?.dataset.model;
function markFocus(model) {
  for (const choice of byId("picker").querySelectorAll("button[data-model]")) choice.ariaPressed = String(choice.dataset.model === (address().get("model") || model));
}
function readyPicker() {
  const box = byId("picker");
  box.addEventListener("change", ({ target }) => {
    if (target.name === "models") {
      const boxes = [...box.querySelectorAll("input[name=models]")], on = boxes.filter((one) => one.checked).map((one) => one.value);
      go({ models: on.length === boxes.length ? [] : on });
    } else if (target.name === "method") go({ method: target.value });
    else if (target.name === "group") go({ group: target.value, span: null });
  });
  box.addEventListener("click", ({ target }) => { const choice = target.closest("button[data-model]"); if (choice) go({ model: choice.dataset.model, span: null }); });
  box.addEventListener("input", ({ target }) => {
    if (!target.matches(".find")) return;
    for (const choice of box.querySelectorAll(".choice")) choice.hidden = !choice.dataset.name.includes(target.value.toLowerCase());
  });
}

// -- charts that open what is behind them -------------------------------------------------------

function keyed(key) {
  if (key.startsWith("bin:")) return { span: key.slice(4) };
  const says = /^says:(.+)$/.exec(key);
  if (says) return { span: `${+says[1] - 0.025}:${+says[1] + 0.025}` };
  const parts = key.split("\u241f"), rule = /^(.+?) = (.+)$/.exec(parts[2] || "");
  // A group that was found: its rows, where one value of one column makes it.
  if (rule) return rule[0].includes(" and ") ? null : { model: parts[0], method: parts[1], group: `${rule[1]}=${rule[2]}`, span: null, tab: "questions" };
  if (parts.length === 3) return { model: parts[0], method: parts[1], group: parts[2] || null, span: null };
  // A pair of models: the questions that one answers right and the other wrong.
  if (parts.length === 2) return { models: parts, model: null, split: "1", tab: "questions" };
  const named = [...byId("picker").querySelectorAll("button[data-model]")].some((choice) => choice.dataset.model === key);
  return named ? { model: key, grade: "wrong", tab: "questions" } : null;
}
function linkCharts(root) {
  for (const box of root.querySelectorAll("[data-links]")) {
    const focus = box.dataset.model ? { model: box.dataset.model, method: box.dataset.method } : {};
    for (const part of box.querySelectorAll("[data-key]")) {
      const changes = keyed(part.dataset.key);
      // A range of a chart that names no model could list the rows of another one.
      if (!changes || changes.span && !focus.model) continue;
      opens(part, () => {
        go(changes.span ? { ...focus, ...changes, tab: main.querySelector("[data-rows]") ? TAB() : "questions" } : changes);
        if (changes.span) main.querySelector("[data-rows]")?.scrollIntoView({ block: "nearest" });
      }, part.querySelector("title")?.textContent);
    }
    if (box.hasAttribute("data-brush")) readyBrush(box, focus);
  }
}
// What is chosen is marked in the diagram and in the list of models.
function marked() {
  const span = address().get("span"), focus = main.querySelector("[data-rows]");
  for (const part of main.querySelectorAll("[data-key]")) {
    const changes = keyed(part.dataset.key) || {};
    part.classList.toggle("picked", Boolean(changes.span) && changes.span === span || Boolean(focus && changes.model && changes.model === focus.dataset.model && changes.method === focus.dataset.method));
  }
  for (const band of main.querySelectorAll(".brushed")) band.remove();
  const svg = main.querySelector("[data-brush] svg");
  if (span && svg) drawBand(svg, ...span.split(":").slice(0, 2).map(Number));
}
function scaleOf(svg) {
  const [x0, x1, y0, y1] = svg.dataset.plot.split(" ").map(Number), [a, b, c, d] = svg.dataset.domain.split(" ").map(Number);
  return { x: (v) => x0 + (v - a) / (b - a) * (x1 - x0), y: (v) => y0 + (v - c) / (d - c) * (y1 - y0),
    toX: (p) => a + (p - x0) / (x1 - x0) * (b - a), toY: (p) => c + (p - y0) / (y1 - y0) * (d - c), x0, x1, y0, y1, c, d };
}
function pointIn(svg, event) { return new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()); }
function shareIn(svg, event) { return Math.min(Math.max(scaleOf(svg).toX(pointIn(svg, event).x), 0), 1); }
function drawBand(svg, low, high) {
  const s = scaleOf(svg), left = s.x(Math.max(low, 0)), right = s.x(Math.min(high, 1));
  const band = mark("rect", { class: "brushed", x: left, width: Math.max(right - left, 1), y: s.y1, height: s.y0 - s.y1 });
  svg.prepend(band);
  return band;
}
function readyBrush(box, focus) {
  const svg = box.querySelector("svg");
  let from = null, band = null;
  svg.addEventListener("pointerdown", (event) => {
    if (event.target.closest("[data-key]")) return;
    const s = scaleOf(svg), p = pointIn(svg, event);
    if (p.x < s.x0 - 4 || p.x > s.x1 + 4) return;
    from = shareIn(svg, event);
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  svg.addEventListener("pointermove", (event) => {
    if (from === null) return;
    band?.remove();
    band = drawBand(svg, ...[from, shareIn(svg, event)].sort((a, b) => a - b));
  });
  svg.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const ends = [from, shareIn(svg, event)].sort((a, b) => a - b);
    from = null;
    band?.remove();
    if (ends[1] - ends[0] > 0.01) go({ ...focus, span: ends.map((end) => +end.toFixed(3)).join(":") });
  });
}

// -- the limit of a decision, dragged on its chart ------------------------------------------------

function readyDrag() {
  const box = main.querySelector(".drag"), svg = box && box.querySelector("svg");
  if (!svg || box.dataset.limit === "") return;
  const s = scaleOf(svg), curve = JSON.parse(box.dataset.curve), costs = JSON.parse(box.dataset.costs), tried = byId("tried");
  // Where the threshold was chosen for its costs, a ring stands at the left and no words at the right.
  const knob = box.dataset.chosen ? s.x1 - 44 : s.x0 + 10;
  let limit = Number(box.dataset.limit), waiting = 0;
  const handle = mark("g", { class: "handle", tabindex: 0, role: "slider", "aria-label": "Largest share of wrong answers among those given", "aria-valuemin": 0.5, "aria-valuemax": Math.round(100 * s.d) });
  handle.append(mark("rect", { class: "hit", x: s.x0, y: -14, width: s.x1 - s.x0, height: 28 }), mark("path", { class: "limit", d: `M${s.x0} 0H${s.x1}` }),
    mark("rect", { class: "knob", x: knob, y: -11, width: 34, height: 22, rx: 6 }), mark("path", { class: "grip", d: `M${knob + 10} -3h14M${knob + 10} 3h14` }));
  svg.role = "group";
  svg.append(handle);
  const place = (value) => {
    limit = Math.min(Math.max(value, 0.005), s.d);
    handle.setAttribute("transform", `translate(0 ${s.y(limit)})`);
    Object.assign(handle, { ariaValueNow: (100 * limit).toFixed(1), ariaValueText: `${percent(limit)} wrong` });
  };
  const words = () => {
    const able = curve.filter((point) => point[2] <= limit), best = able.length ? able[able.length - 1] : null;
    tried.textContent = best ? `At most ${percent(limit)} wrong: on these rows ${percent(best[1])} could be answered alone${costs.wrong ? `, at a cost of ${(best[1] * best[2] * costs.wrong + (1 - best[1]) * costs.ask).toPrecision(3)} a question` : ""}. Let go to certify it.` : `At most ${percent(limit)} wrong: no threshold on these rows keeps that.`;
  };
  const ask = (soon) => { clearTimeout(waiting); waiting = setTimeout(() => go({ "decide.max_error": String(+limit.toFixed(3)) }), soon); };
  place(limit);
  let dragging = false;
  handle.addEventListener("pointerdown", (event) => { dragging = true; handle.setPointerCapture(event.pointerId); event.preventDefault(); handle.focus(); });
  handle.addEventListener("pointermove", (event) => { if (dragging) { place(s.toY(pointIn(svg, event).y)); words(); } });
  handle.addEventListener("pointerup", () => { if (dragging) { dragging = false; ask(0); } });
  handle.addEventListener("keydown", (event) => {
    const step = { ArrowUp: 0.01, ArrowRight: 0.01, ArrowDown: -0.01, ArrowLeft: -0.01, PageUp: 0.05, PageDown: -0.05 }[event.key];
    if (!step) return;
    event.preventDefault();
    place(limit + step);
    words();
    ask(700);
  });
}

// -- what a stated confidence means, as the slider moves --------------------------------------------

function readyMeaning() {
  const slider = main.querySelector("[data-map]");
  if (!slider) return;
  const map = JSON.parse(slider.dataset.map), told = main.querySelector(".slide output");
  const at = (values, said) => {
    const right = map.knots.findIndex((knot) => knot > said), k = map.knots;
    if (right === 0 || right === -1) return 1 / (1 + Math.exp(-values[right === 0 ? 0 : values.length - 1]));
    const share = (said - k[right - 1]) / (k[right] - k[right - 1]);
    return 1 / (1 + Math.exp(-(values[right - 1] + share * (values[right] - values[right - 1]))));
  };
  const show = () => {
    const said = slider.value / 100;
    told.textContent = `${percent(said)}, means ${percent(at(map.log_odds, said))} (${percent(at(map.low, said))} to ${percent(at(map.high, said))})`;
  };
  slider.addEventListener("input", show);
  show();
}

// -- rows ------------------------------------------------------------------------------------------

let rowTurn = 0;
async function loadRows() {
  const box = main.querySelector("[data-rows]");
  if (!box) return;
  const own = ++rowTurn, active = document.activeElement, typed = active && box.contains(active) && active.name ? [active.name, active.selectionStart] : null;
  markFocus(inFocus());
  const state = address(), extra = {};
  for (const name of ["model", "method"]) if (!state.get(name) && box.dataset[name]) extra[name] = box.dataset[name];
  box.setAttribute("aria-busy", "true");
  const answer = await fetch("/api/rows?" + query(extra)), text = await answer.text();
  if (own !== rowTurn) return;
  const here = chosenRow()?.dataset.place;
  box.replaceChildren(answer.ok ? parsed(text) : made("p", text, "trouble"));
  box.removeAttribute("aria-busy");
  // Who corrects a grade goes on from the same row.
  box.querySelector(`tr[data-place="${here}"]`)?.classList.add("chosen");
  if (typed) {
    const again = box.querySelector(`[name="${typed[0]}"]`);
    if (again) { again.focus(); if (again.type === "search") again.setSelectionRange(typed[1], typed[1]); }
  }
  // A long search goes on where it stopped.
  if (box.querySelector("[data-searching]")) setTimeout(() => { if (own === rowTurn) loadRows(); }, 100);
}
let typing = 0;
function readyRows() {
  main.addEventListener("change", ({ target }) => {
    if (!target.closest("[data-rows]")) return;
    if (target.name === "split") go({ split: target.checked ? "1" : null });
    else if (target.name === "grade" || target.name === "sort") go({ [target.name]: target.value });
  });
  main.addEventListener("input", ({ target }) => {
    if (target.name !== "words") return;
    clearTimeout(typing);
    typing = setTimeout(() => go({ words: target.value }, { replace: true }), 250);
  });
  main.addEventListener("click", (event) => {
    const { target } = event, row = target.closest("tr[data-place]"), drop = target.closest("[data-drop]"), start = target.closest("[data-start]");
    if (drop) go({ [drop.dataset.drop]: null, ...(drop.dataset.drop === "model" && TAB() === "overview" ? { tab: "questions" } : {}) });
    else if (start) { go({ start: start.dataset.start === "0" ? null : start.dataset.start }); main.querySelector("[data-rows]").scrollIntoView(); }
    else if (row && !String(window.getSelection())) openRow(row);
    else if (target.closest("[data-again]")) again();
    else if (target.closest("[data-label]")) label();
  });
  document.addEventListener("keydown", keys);
  const panel = byId("panel");
  panel.addEventListener("click", (event) => {
    const step = event.target.closest("[data-step]"), grade = event.target.closest("[data-grade]");
    if (event.target.closest("[data-close]")) panel.close();
    else if (step) openRow(neighbour(Number(step.dataset.step)));
    else if (grade) correct(grade.dataset.grade);
  });
}
function chosenRow() { return main.querySelector("tr.chosen"); }
function neighbour(by) {
  const rows = [...main.querySelectorAll("tr[data-place]")], here = rows.indexOf(chosenRow());
  return rows[Math.min(Math.max(here + by, 0), rows.length - 1)] || null;
}
function choose(row) {
  if (!row) return;
  for (const other of main.querySelectorAll("tr.chosen")) other.classList.remove("chosen");
  row.classList.add("chosen");
  row.scrollIntoView({ block: "nearest" });
}
async function openRow(row) {
  if (!row) return;
  choose(row);
  const answer = await fetch(`/api/row/${row.dataset.place}`);
  showPanel(parsed(await answer.text()));
}
async function correct(grade) {
  const place = Number(byId("panel").querySelector(".correct").dataset.place);
  const answer = await send("/api/grade", JSON.stringify({ place, grade }));
  byId("panel").replaceChildren(parsed(await answer.text()));
  byId("panel").querySelector(`[data-grade="${grade === "as given" ? "right" : grade}"]`)?.focus();
  loadRows();
}
function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
  const panel = byId("panel"), by = { j: 1, k: -1 }[event.key];
  const turn = by && neighbour(by) === chosenRow() && main.querySelector(`[data-turn="${by}"]`);
  if (turn) { event.preventDefault(); turn.click(); } else if (by && main.querySelector("tr[data-place]")) {
    event.preventDefault();
    if (panel.open) openRow(neighbour(by)); else { const row = neighbour(by); choose(row); row.focus({ preventScroll: true }); }
  } else if (event.key === "Enter" && event.target.matches("tr[data-place]")) openRow(event.target);
  else if (panel.open && (event.key === "1" || event.key === "0")) correct(event.key === "1" ? "right" : "wrong");
}

// -- the rest ----------------------------------------------------------------------------------------

async function again() { await send(`/api/again/${TAB()}?${query()}`); show(); }
// Which column is what: everything is read anew.
async function readAs(form) {
  const said = Object.fromEntries(new FormData(form));
  if (said.repeats) said.repeats = true;
  const answer = await send("/api/read", JSON.stringify(said));
  if (!answer.ok) { trouble(await answer.text()); return; }
  pickerFor = null;
  history.pushState(null, "", `?tab=${TAB()}`);
  show();
}
async function label() {
  const answer = await send("/api/label");
  if (!answer.ok) { main.append(made("p", await answer.text(), "trouble")); return; }
  location.assign((await answer.json()).address);
}
async function openFiles(files) {
  if (!files.length) return;
  const box = byId("trouble");
  let answer = null;
  main.setAttribute("aria-busy", "true");
  for (const [number, file] of [...files].entries()) {
    answer = await send(`/api/open?more=${number ? 1 : 0}&left=${files.length - 1 - number}&name=${encodeURIComponent(file.name)}`, file).catch(() => null);
    if (!answer || !answer.ok) break;
  }
  if (answer && answer.ok) { location.assign("/"); return; }
  const words = answer ? await answer.text() : "The file could not be sent.";
  main.removeAttribute("aria-busy");
  if (box) { box.hidden = false; box.textContent = words; } else trouble(words);
}
for (const input of document.querySelectorAll("input[type=file]")) input.addEventListener("change", () => openFiles(input.files));
document.addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("over"); });
document.addEventListener("dragleave", () => document.body.classList.remove("over"));
document.addEventListener("drop", (event) => { event.preventDefault(); document.body.classList.remove("over"); openFiles(event.dataTransfer.files); });
document.addEventListener("click", ({ target }) => { if (byId("save") && !byId("save").contains(target)) byId("save").open = false; });
if (byId("picker")) {
  document.querySelector(".tabs").addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (link.search !== location.search) history.pushState(null, "", link.search);
    show();
  });
  byId("command-button").addEventListener("click", ({ currentTarget }) => {
    const box = byId("command");
    box.hidden = !box.hidden;
    currentTarget.ariaExpanded = String(!box.hidden);
  });
  main.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.target.matches("[data-read]")) { readAs(event.target); return; }
    const changes = {};
    for (const field of event.target.elements) {
      if (field.dataset.percent !== undefined) changes[field.name] = field.value === "" ? "" : String(+(field.value / 100).toFixed(6));
      else if (field.dataset.many !== undefined) changes[field.name] = [changes[field.name], field.checked ? field.value : ""].filter(Boolean).join(",");
      else if (field.dataset.part) { if (field.value !== "") changes[field.name] = [changes[field.name], `${field.dataset.part}=${field.value}`].filter(Boolean).join(","); else changes[field.name] = changes[field.name] || ""; }
      else if (field.name) changes[field.name] = field.type === "checkbox" ? (field.checked ? "on" : null) : field.value;
    }
    go(changes);
  });
  window.addEventListener("popstate", () => show());
  readyPicker();
  readyRows();
  show();
}

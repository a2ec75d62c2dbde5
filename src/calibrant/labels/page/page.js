"use strict";
// Everything a model or a file says goes through textContent: it is never read as markup.
const $ = (id) => document.getElementById(id);
const KEYS = { "1": "right", r: "right", ArrowRight: "right", "0": "wrong", w: "wrong", ArrowLeft: "wrong",
  u: "unsure", s: "skip" };
// Labels that the server does not have yet, kept for each pool apart.
const held = () => "calibrant-label-held-" + store;
let who = localStorage.getItem("calibrant-label-who") || "";
let item = null, busy = false, settling = false, retry = 0, store = "";

async function call(path, body) {
  const options = { headers: { "X-Labelling": "1" }, cache: "no-store" };
  if (body) Object.assign(options, { method: "POST", body: JSON.stringify(body),
    headers: { "X-Labelling": "1", "Content-Type": "application/json" } });
  const answer = await fetch(path, options);
  const found = await answer.json().catch(() => ({ error: "The server gave no readable answer." }));
  if (!answer.ok) throw Object.assign(new Error(found.error || answer.statusText), { told: answer.status });
  return found;
}

function show(id) { for (const part of ["welcome", "item", "finished"]) $(part).hidden = part !== id; }
function trouble(text) { $("trouble").hidden = !text; $("trouble").textContent = text || ""; }
function put(id, text) { $(id).textContent = text == null ? "" : String(text); }

function progress(state) {
  if (!state) return;
  store = state.store;
  put("progress", state.text);
  const share = state.goal ? Math.min(1, state.decided / state.goal) : 0;
  $("done").style.width = (100 * share).toFixed(1) + "%";
  const bar = document.querySelector(".bar");
  bar.setAttribute("aria-valuenow", state.decided);
  bar.setAttribute("aria-valuemax", state.goal || state.items);
  $("settle").hidden = settling || !state.conflicts;
  put("settle", `Settle ${state.conflicts} ${state.conflicts === 1 ? "conflict" : "conflicts"}`);
  $("back").hidden = !settling;
}

function display(found) {
  progress(found.progress);
  item = found.item;
  put("who", who);
  $("note").value = "";
  if (!item) {
    put("finished-text", found.reason || "");
    show("finished");
    return;
  }
  put("mode", settling ? "Two people disagree: is this answer right?" : "Is this answer right?");
  put("question", item.question);
  put("answer", item.answer);
  put("reference", item.reference);
  $("reference-part").hidden = item.reference == null;
  const list = $("choices");
  list.replaceChildren(...(item.choices || []).map((text) => {
    const entry = document.createElement("li");
    entry.textContent = text;
    return entry;
  }));
  list.hidden = !(item.choices || []).length;
  $("said").hidden = !item.said;
  put("said", item.said);
  show("item");
  window.scrollTo(0, 0);
}

async function act(path, body) {
  if (busy) return;
  busy = true;
  for (const button of document.querySelectorAll(".buttons button")) button.disabled = true;
  // Kept until the server has it: a label survives a crash of either side.
  if (body && body.label) localStorage.setItem(held(), JSON.stringify({ path, body }));
  let answered = false;
  try {
    const found = await call(path, body);
    if (body && body.label) localStorage.removeItem(held());
    retry = 0;
    trouble("");
    display(found);
    answered = true;
  } catch (error) { failed(error); }
  busy = false;
  for (const button of document.querySelectorAll(".buttons button")) button.disabled = false;
  // Once the server has named its pool, a label that was kept for it goes first.
  const kept = answered && waiting();
  if (kept) act(kept.path, kept.body);
}

function failed(error) {
  const kept = localStorage.getItem(held()) ? " Your label is kept here." : "";
  if (error.told === 403) trouble(error.message + kept);
  else if (error.told && error.told < 500) { localStorage.removeItem(held()); trouble(error.message); }
  else { trouble("The server does not answer." + kept + " It is asked again."); later(); }
}

function later() {
  retry += 1;
  setTimeout(resume, Math.min(500 * retry, 5000));
}

function waiting() {
  const kept = JSON.parse(localStorage.getItem(held()) || "null");
  return kept && kept.body.who === who ? kept : null;
}

function resume() {
  const kept = waiting();
  if (kept) act(kept.path, kept.body);
  else next();
}

function next() { act((settling ? "api/conflict?who=" : "api/next?who=") + encodeURIComponent(who)); }
function label(name) {
  if (!item) return;
  if (settling && (name === "unsure" || name === "skip")) return;
  act(settling ? "api/settle" : "api/label", { who, store, item: item.id, label: name, note: $("note").value || null });
}
function undo() { act("api/undo", { who }); }

$("welcome").addEventListener("submit", (event) => {
  event.preventDefault();
  who = $("name").value.trim();
  if (!who) return;
  localStorage.setItem("calibrant-label-who", who);
  next();
});
for (const button of document.querySelectorAll("[data-label]"))
  button.addEventListener("click", () => label(button.dataset.label));
$("undo").addEventListener("click", undo);
$("undo-last").addEventListener("click", undo);
$("settle").addEventListener("click", () => { settling = true; next(); });
$("back").addEventListener("click", () => { settling = false; next(); });
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.matches("input, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if ($("item").hidden && $("finished").hidden) return;
  if (event.key === "z" || event.key === "Backspace") { event.preventDefault(); undo(); }
  else if (event.key === "n" && !$("item").hidden) {
    event.preventDefault(); $("note-part").open = true; $("note").focus();
  } else if (KEYS[event.key]) { event.preventDefault(); label(KEYS[event.key]); }
});

const asked = new URLSearchParams(location.search).get("who");
if (asked) { who = asked; localStorage.setItem("calibrant-label-who", who); }
if (who) resume(); else show("welcome");

// -- labelling: everything a model or a file says is text, never markup --------------------------

const KEYS = { "1": "right", r: "right", ArrowRight: "right", "0": "wrong", w: "wrong", ArrowLeft: "wrong",
  u: "unsure", s: "skip" };
// Labels that the server does not have yet, kept for each pool apart.
const held = () => "calibrant-label-held-" + store;
let who = localStorage.getItem("calibrant-label-who") || "";
let item = null, busy = false, settling = false, retry = 0, store = "";

async function call(path, body) {
  const headers = { "X-Labelling": "1", "Content-Type": "application/json" };
  const answer = await fetch(path, body ? { method: "POST", body: JSON.stringify(body), headers } : { headers });
  const found = await answer.json().catch(() => ({ error: "The server gave no readable answer." }));
  if (!answer.ok) throw Object.assign(new Error(found.error || answer.statusText), { told: answer.status });
  return found;
}

function show(id) { for (const part of ["welcome", "item", "finished"]) byId(part).hidden = part !== id; }
function trouble(text) { byId("trouble").hidden = !text; byId("trouble").textContent = text || ""; }
function put(id, text) { byId(id).textContent = text; }

function progress(state) {
  if (!state) return;
  store = state.store;
  put("progress", state.text);
  const share = state.goal ? Math.min(1, state.decided / state.goal) : 0;
  byId("done").style.width = (100 * share).toFixed(1) + "%";
  Object.assign(document.querySelector(".bar"), { ariaValueNow: state.decided, ariaValueMax: state.goal || state.items });
  byId("settle").hidden = settling || !state.conflicts;
  put("settle", `Settle ${state.conflicts} ${state.conflicts === 1 ? "conflict" : "conflicts"}`);
  byId("back").hidden = !settling;
}

function display(found) {
  progress(found.progress);
  item = found.item;
  put("who", who);
  byId("note").value = "";
  put("finished-text", found.reason);
  if (!item) { show("finished"); return; }
  put("mode", settling ? "Two people disagree: is this answer right?" : "Is this answer right?");
  put("question", item.question);
  put("answer", item.answer);
  put("reference", item.reference);
  byId("reference-part").hidden = item.reference == null;
  byId("choices").replaceChildren(...item.choices.map((text) => made("li", text)));
  byId("choices").hidden = !item.choices.length;
  byId("said").hidden = !item.said;
  put("said", item.said);
  show("item");
  window.scrollTo(0, 0);
}

function setButtons(disabled) { for (const one of document.querySelectorAll(".buttons button")) Object.assign(one, { disabled }); }
async function act(path, body) {
  if (busy) return;
  busy = true;
  setButtons(true);
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
  setButtons(false);
  // Once the server has named its pool, a label that was kept for it goes first.
  const kept = answered && waiting();
  if (kept) act(kept.path, kept.body);
}

function failed(error) {
  const kept = localStorage.getItem(held()) ? " Your label is kept here." : "";
  if (error.told === 403) trouble(error.message + kept);
  else if (error.told && error.told < 500) { localStorage.removeItem(held()); trouble(error.message); }
  else {
    trouble("The server does not answer." + kept + " It is asked again.");
    retry += 1;
    setTimeout(resume, Math.min(500 * retry, 5000));
  }
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
  act(settling ? "api/settle" : "api/label", { who, store, item: item.id, label: name, note: byId("note").value || null });
}
function undo() { act("api/undo", { who }); }

byId("welcome").addEventListener("submit", (event) => {
  event.preventDefault();
  who = byId("name").value.trim();
  if (!who) return;
  localStorage.setItem("calibrant-label-who", who);
  next();
});
for (const one of document.querySelectorAll("[data-label]")) one.onclick = () => label(one.dataset.label);
for (const name of ["undo", "undo-last"]) byId(name).onclick = undo;
for (const name of ["settle", "back"]) byId(name).onclick = () => { settling = name === "settle"; next(); };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.matches("input, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (byId("item").hidden && byId("finished").hidden) return;
  if (event.key === "z" || event.key === "Backspace") { event.preventDefault(); undo(); }
  else if (event.key === "n" && !byId("item").hidden) {
    event.preventDefault(); byId("note-part").open = true; byId("note").focus();
  } else if (KEYS[event.key]) { event.preventDefault(); label(KEYS[event.key]); }
});

const asked = new URLSearchParams(location.search).get("who");
if (asked) { who = asked; localStorage.setItem("calibrant-label-who", who); }
if (who) resume(); else show("welcome");

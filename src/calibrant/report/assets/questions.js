// -- questions and answers: the most confidently wrong first ----------------------------------

function answerLine(answer, draws) {
  const grade = answer.correct === true ? "right" : answer.correct === false ? "wrong" : "open";
  const line = made("div", undefined, "meaning"), sign = made("span", undefined, grade), words = made("bdi", answer.answer), weight = made("span", undefined, "weight"), size = made("span", undefined, "size");
  sign.setAttribute("role", "img");
  sign.setAttribute("aria-label", grade === "open" ? "not graded" : grade);
  size.style.width = `${Math.max(2, 100 * answer.draws / draws)}%`;
  weight.append(size, made("span", `${answer.draws}`, "count"));
  line.append(sign, words, weight);
  return line;
}
function worstScore(question, method, model) {
  let worst = null;
  if (!Array.isArray(question.scores)) return null;
  for (const score of question.scores) {
    if ((method && score.method !== method) || (model && score.model !== model) || score.correct !== 0 || !known(score.confidence)) continue;
    if (!worst || score.confidence > worst.confidence) worst = score;
  }
  return worst;
}
function questionBox(question, state) {
  const box = made("article"), title = made("h3"), worst = worstScore(question, state.method, state.model);
  title.append(made("bdi", question.text), made("span", ` ${question.id}`, "kind"));
  box.append(title);
  if (worst) box.append(made("p", `says ${percent(worst.confidence)} and is wrong (${[worst.model, worst.method].filter(Boolean).join(" / ")})`, "wrongest"));
  if (question.reference) { const right = made("p", "Reference: ", "kind"); right.append(made("bdi", question.reference)); box.append(right); }
  for (const model of new Set(question.answers.map((a) => a.model))) {
    const own = question.answers.filter((a) => a.model === model), draws = own.reduce((sum, a) => sum + a.draws, 0), head = made("h4");
    head.append(made("bdi", model), made("span", ` ${draws} ${draws === 1 ? "draw" : "draws"} in ${own.length} ${own.length === 1 ? "meaning" : "meanings"}`, "kind"));
    box.append(head, ...own.map((answer) => answerLine(answer, draws)));
  }
  const scores = Array.isArray(question.scores) ? question.scores : [];
  if (scores.length || typeof question.scores === "string") {
    const fold = made("details");
    fold.append(made("summary", `${scores.length || "All"} confidences`, "kind"));
    if (scores.length) fold.append(plainTable(["model", "method", "confidence", "answer is"], scores.map((s) => [s.model, s.method, known(s.confidence) ? s.confidence : "no confidence", s.correct === 1 ? "right" : s.correct === 0 ? "wrong" : "not graded"])));
    else fold.append(made("p", question.scores, "note"));
    box.append(fold);
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
  silent: (_, question) => Array.isArray(question.scores) && question.scores.some((s) => !known(s.confidence)),
};
function questionTools(data, state, redraw) {
  const set = (name) => (value) => { state[name] = value; redraw(); };
  const values = (of) => [...new Set(data.flatMap(of))].filter((value) => known(value) && value !== "").map(String);
  const scores = (q) => Array.isArray(q.scores) ? q.scores : [];
  const find = searchBox(set("words"));
  find.id = "questions-filter";
  const verdict = choice([["all", "all"], ["wrong", "most frequent answer wrong"], ["right", "most frequent answer right"], ["split", "models disagree"], ["silent", "no confidence"]], "all", set("kind"));
  verdict.id = "questions-kind";
  const parts = [field("Search", find), field("Answers", verdict)];
  for (const name of ["model", "method"]) {
    const found = values((q) => scores(q).map((s) => s[name]));
    if (found.length > 1) parts.push(field(name === "model" ? "Model" : "Confidence", choice([["", "any"], ...found.map((v) => [v, v])], "", set(name))));
  }
  for (const name of values((q) => Object.keys(q.facets || {}))) {
    const found = values((q) => q.facets && [q.facets[name]]).sort();
    if (found.length > 1 && found.length <= 60) parts.push(field(name, choice([["", "any"], ...found.map((v) => [v, v])], "", (value) => { state.facets[name] = value; redraw(); })));
  }
  return parts;
}
function unpacked({ names, rows }) {
  return rows.map((q) => ({ ...q, answers: q.answers.map(([model, answer, draws, correct]) => ({ model: names[model], answer, draws, correct })),
    scores: Array.isArray(q.scores) ? q.scores.map(([model, method, confidence, correct]) => ({ model: names[model], method: names[method], confidence, correct })) : q.scores }));
}
// A cell of a diagram was chosen: its answers are listed.
let browseCell = () => {};
function inCell(question, { model, method, low, high, without }) {
  return Array.isArray(question.scores) && question.scores.some((s) => s.model === model && s.method === method && known(s.confidence)
    && (low === high ? Math.abs(s.confidence - low) < 6e-4 : s.confidence >= low && (s.confidence < high || high >= 1)) && !without.some((v) => Math.abs(s.confidence - v) < 6e-4));
}
function linkCells(svg, entry) {
  if (!byId("browse")) return;
  for (const part of svg.querySelectorAll("[data-key^='bin:']")) {
    const [low, high, rest] = part.dataset.key.slice(4).split(":");
    const open = () => browseCell({ model: entry.model, method: entry.method, low: +low, high: +high, without: rest ? rest.split(",").map(Number) : [] });
    part.setAttribute("tabindex", "0");
    part.setAttribute("role", "button");
    part.setAttribute("aria-label", part.querySelector("title").textContent);
    svg.setAttribute("role", "group");
    part.addEventListener("click", open);
    part.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(); } });
  }
}
function readyBrowser() {
  const holder = byId("questions"), part = byId("browse");
  if (!holder) return;
  const start = () => {
    const data = unpacked(JSON.parse(byId("questions-data").textContent)), state = { words: "", kind: "all", model: "", method: "", facets: {} };
    const searched = data.map((q) => [q.id, q.text, typeof q.scores === "string" ? q.scores : "", ...q.answers.map((a) => a.answer)].join(" ").toLowerCase());
    const count = byId("questions-count");
    const fits = (q, place) => (!state.cell || inCell(q, state.cell)) && searched[place].includes(state.words) && KINDS[state.kind](modesOf(q), q)
      && Object.entries(state.facets).every(([name, value]) => !value || String((q.facets || {})[name]) === value);
    const show = (most) => {
      const found = data.filter(fits).map((q) => [q, worstScore(q, state.method, state.model)]);
      found.sort((a, b) => (b[1] ? b[1].confidence : -1) - (a[1] ? a[1].confidence : -1));
      holder.replaceChildren(...found.slice(0, most).map(([q]) => questionBox(q, state)));
      count.textContent = `${found.length} of ${data.length} questions` + (found.length > most ? `, the first ${most} shown` : "");
      if (found.length <= most) return;
      const more = button("Show more questions", () => {
        show(most + 50);
        // The button is gone; who uses the keyboard goes on at the first new question.
        holder.children[most].tabIndex = -1;
        holder.children[most].focus({ preventScroll: true });
      }, "more");
      holder.append(more);
    };
    const chosen = made("span");
    browseCell = (cell) => {
      Object.assign(state, { cell, model: cell.model, method: cell.method });
      const range = cell.low === cell.high ? percent(cell.low) : `${percent(cell.low)} to ${percent(cell.high)}`;
      chosen.replaceChildren(button(`said ${range} \u00d7`, () => { Object.assign(state, { cell: null, model: "", method: "" }); chosen.replaceChildren(); show(10); }));
      if (byId("panel").open) byId("panel").close();
      part.open = true;
      show(10);
      part.scrollIntoView();
    };
    byId("questions-tools").append(...questionTools(data, state, () => show(10)), chosen);
    show(10);
  };
  let started = false;
  browseCell = (cell) => { if (!started) { started = true; start(); } browseCell(cell); };
  part.addEventListener("toggle", () => { if (part.open && !started) { started = true; start(); } });
}

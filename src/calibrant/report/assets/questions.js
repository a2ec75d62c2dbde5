// -- questions and answers: the most confidently wrong first ----------------------------------

// True and 1 are right, false and 0 wrong; null is neither.
const gradeOf = (correct) => correct == 1 ? "right" : correct == 0 ? "wrong" : "open";
const gradeWords = (grade) => grade === "open" ? "not graded" : grade;
function answerLine({ answer, correct, draws }, all) {
  const grade = gradeOf(correct), sign = made("span", null, grade), size = made("span", null, "size");
  Object.assign(sign, { role: "img", ariaLabel: gradeWords(grade) });
  size.style.width = `${Math.max(2, 100 * draws / all)}%`;
  return made("div", [sign, made("bdi", answer), made("span", [size, made("span", draws, "count")], "weight")], "meaning");
}
const scoresOf = (question) => Array.isArray(question.scores) ? question.scores : [];
function worstScore(question, method, model) {
  const fits = (score) => (!method || score.method === method) && (!model || score.model === model) && score.correct === 0 && known(score.confidence);
  return scoresOf(question).filter(fits).reduce((worst, score) => !worst || score.confidence > worst.confidence ? score : worst, null);
}
function plainTable(columns, rows) {
  const cells = (row) => row.map((value) => made("td", typeof value === "number" ? +value.toPrecision(4) : value, typeof value === "number" ? "" : "label"));
  const heads = columns.map((name, place) => head(name, typeof rows[0][place] === "number" ? "" : "label"));
  return made("table", [made("thead", made("tr", heads)), made("tbody", rows.map((row) => made("tr", cells(row))))]);
}
function scoreList(question) {
  const scores = scoresOf(question);
  if (!scores.length && typeof question.scores !== "string") return null;
  const rows = scores.map((s) => [s.model, s.method, s.confidence ?? "no confidence", gradeWords(gradeOf(s.correct))]);
  const body = scores.length ? plainTable(["model", "method", "confidence", "answer is"], rows) : made("p", question.scores, "note");
  return made("details", [made("summary", `${scores.length || "All"} confidences`, "kind"), body]);
}
function questionBox(question, state) {
  const worst = worstScore(question, state.method, state.model), count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
  const models = [...new Set(question.answers.map((a) => a.model))].flatMap((model) => {
    const own = question.answers.filter((a) => a.model === model), draws = own.reduce((sum, a) => sum + a.draws, 0);
    const amount = made("span", ` ${count(draws, "draw")} in ${count(own.length, "meaning")}`, "kind");
    return [made("h4", [made("bdi", model), amount]), ...own.map((answer) => answerLine(answer, draws))];
  });
  return made("article", [
    made("h3", [made("bdi", question.text), made("span", ` ${question.id}`, "kind")]),
    worst && made("p", `says ${percent(worst.confidence)} and is wrong (${[worst.model, worst.method].filter(Boolean).join(" / ")})`, "wrongest"),
    question.reference ? made("p", ["Reference: ", made("bdi", question.reference)], "kind") : null,
    ...models,
    scoreList(question),
  ]);
}
// The grade of each model's most frequent answer, which comes first.
const modesOf = ({ answers }) => answers.filter((a, place) => answers.findIndex((b) => b.model === a.model) === place).map((a) => a.correct);
const KINDS = [
  ["all", "all", () => true],
  ["wrong", "most frequent answer wrong", (modes) => modes.length > 0 && modes.every((grade) => grade === false)],
  ["right", "most frequent answer right", (modes) => modes.length > 0 && modes.every((grade) => grade === true)],
  ["split", "models disagree", (modes) => new Set(modes).size > 1],
  ["silent", "no confidence", (_, question) => scoresOf(question).some((s) => !known(s.confidence))],
];
function questionTools(data, state, redraw) {
  const set = (name, of = state) => (value) => { of[name] = value; redraw(); };
  const values = (of) => [...new Set(data.flatMap(of))].filter((value) => known(value) && value !== "").map(String);
  const anyOf = (found) => [["", "any"], ...found.map((v) => [v, v])];
  const find = searchBox(set("words")), verdict = choice(KINDS, "all", set("kind"));
  find.id = "questions-filter";
  verdict.id = "questions-kind";
  const parts = [field("Search", find), field("Answers", verdict)];
  for (const [name, words] of [["model", "Model"], ["method", "Confidence"]]) {
    const found = values((q) => scoresOf(q).map((s) => s[name]));
    if (found.length > 1) parts.push(field(words, choice(anyOf(found), "", set(name))));
  }
  for (const name of values((q) => Object.keys(q.facets || {}))) {
    const found = values((q) => q.facets && [q.facets[name]]).sort();
    if (found.length > 1 && found.length <= 60) parts.push(field(name, choice(anyOf(found), "", set(name, state.facets))));
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
  const near = (a, b) => Math.abs(a - b) < 6e-4;
  const holds = (c) => low === high ? near(c, low) : c >= low && (c < high || high >= 1);
  return scoresOf(question).some((s) => s.model === model && s.method === method && known(s.confidence) && holds(s.confidence) && !without.some((v) => near(s.confidence, v)));
}
function linkCells(svg, entry) {
  if (!byId("browse")) return;
  for (const part of svg.querySelectorAll("[data-key^='bin:']")) {
    const [low, high, rest] = part.dataset.key.slice(4).split(":"), without = rest ? rest.split(",").map(Number) : [];
    opens(part, () => browseCell({ model: entry.model, method: entry.method, low: +low, high: +high, without }), part.querySelector("title").textContent);
  }
}
function startBrowser() {
  const holder = byId("questions"), data = unpacked(JSON.parse(byId("questions-data").textContent)), state = { words: "", kind: "all", model: "", method: "", facets: {} };
  const searched = data.map((q) => [q.id, q.text, typeof q.scores === "string" ? q.scores : "", ...q.answers.map((a) => a.answer)].join(" ").toLowerCase());
  const fits = (q, place) => (!state.cell || inCell(q, state.cell)) && searched[place].includes(state.words)
    && KINDS.find(([kind]) => kind === state.kind)[2](modesOf(q), q)
    && Object.entries(state.facets).every(([name, value]) => !value || String((q.facets || {})[name]) === value);
  const show = (most) => {
    const rank = (q) => worstScore(q, state.method, state.model)?.confidence ?? -1;
    const found = data.filter(fits).map((q) => [q, rank(q)]).sort((a, b) => b[1] - a[1]);
    holder.replaceChildren(...found.slice(0, most).map(([q]) => questionBox(q, state)));
    byId("questions-count").textContent = `${found.length} of ${data.length} questions` + (found.length > most ? `, the first ${most} shown` : "");
    if (found.length <= most) return;
    holder.append(button("Show more questions", () => {
      show(most + 50);
      // The button is gone; who uses the keyboard goes on at the first new question.
      holder.children[most].tabIndex = -1;
      holder.children[most].focus({ preventScroll: true });
    }, "more"));
  };
  const chosen = made("span");
  browseCell = (cell) => {
    Object.assign(state, { cell, model: cell.model, method: cell.method });
    const range = cell.low === cell.high ? percent(cell.low) : `${percent(cell.low)} to ${percent(cell.high)}`;
    chosen.replaceChildren(button(`said ${range} \u00d7`, () => { Object.assign(state, { cell: null, model: "", method: "" }); chosen.replaceChildren(); show(10); }));
    if (byId("panel").open) byId("panel").close();
    openPart("browse");
    show(10);
    byId("browse").scrollIntoView();
  };
  byId("questions-tools").append(...questionTools(data, state, () => show(10)), chosen);
  show(10);
}
function readyBrowser() {
  const part = byId("browse");
  if (!part) return;
  let start = () => { start = () => {}; startBrowser(); };
  browseCell = (cell) => { start(); browseCell(cell); };
  part.addEventListener("toggle", () => { if (part.open) start(); });
}

// -- start -----------------------------------------------------------------------------------

// Paper cannot be unfolded.
window.addEventListener("beforeprint", () => {
  for (const box of document.querySelectorAll("details.part, details.folded")) box.open = true;
  unfoldCharts(document);
  document.querySelectorAll(".multiple").forEach(drawIn);
});
readyThreshold();
readyExplore();
document.querySelectorAll("svg.lines").forEach(followPointer);
readyBrowser();
followHash();

// -- answer when the confidence is at least t -------------------------------------------------

const costs = { wrong: 10, asked: 1 };
// Cuts fall in their threshold; the last one answers everything.
function atCut(entry, place) {
  const total = entry.total || entry.cuts[entry.cuts.length - 1][1];
  const [threshold, answered, wrong, low, high] = place < 0 ? [1, 0, 0, null, null] : entry.cuts[place];
  return { threshold, answered: total ? answered / total : 0, rows: answered, wrong, error: answered ? wrong / answered : null, low, high,
    cost: total ? (wrong * costs.wrong + (total - answered) * costs.asked) / total : 0 };
}
const thresholdText = (value) => String(+value.toPrecision(4)).replace(/^(0\.\d)$/, "$10");
function tile(words) {
  const box = made("div", undefined, "tile"), value = made("b"), note = made("span", words);
  box.append(value, note);
  return { box, value, note };
}
function thresholdBox(entry, full) {
  const box = made("div", undefined, "sliders"), slider = made("input"), count = entry.cuts.length;
  let place = entry.cuts.findIndex((cut) => cut[0] <= (entry.threshold ?? 0.8));
  if (place < 0) place = count - 1;
  slider.type = "range";
  slider.min = 0;
  slider.max = count;
  slider.step = 1;
  slider.value = count - 1 - place;
  slider.setAttribute("aria-label", "Answer when confidence is at least");
  const said = made("output"), label = made("label", "Answer when confidence is at least "), pictures = made("div", undefined, "try");
  label.append(said, made("br"), slider);
  const tiles = made("div", undefined, "tiles"), answered = tile("answered"), error = tile("wrong among the answered"), cost = tile("cost per question");
  tiles.append(answered.box, error.box, cost.box);
  const input = (name, words) => {
    const number = made("input");
    number.type = "number";
    number.min = 0;
    number.step = "any";
    number.value = costs[name];
    number.addEventListener("input", () => { const value = parseFloat(number.value); if (value >= 0) { costs[name] = value; show(); } });
    return field(words, number);
  };
  const inputs = made("div", undefined, "costs"), best = made("p", undefined, "note");
  inputs.append(input("wrong", "A wrong answer costs"), input("asked", "Not answering costs"));
  const all = () => Array.from({ length: count + 1 }, (_, k) => atCut(entry, k - 1));
  function show() {
    const here = count - 1 - Number(slider.value), now = atCut(entry, here), every = all();
    said.textContent = here < 0 ? "more than any here" : thresholdText(now.threshold);
    answered.value.textContent = percent(now.answered);
    answered.note.textContent = `answered (${(+now.rows.toFixed(1)).toLocaleString("en")} rows)`;
    error.value.textContent = known(now.error) ? percent(now.error) : "\u2013";
    error.note.textContent = known(now.error) ? `wrong among the answered${known(now.low) ? ` (${+(100 * entry.level).toPrecision(3)} % interval ${percent(now.low)} to ${percent(now.high)})` : ""}` : "nothing is answered";
    cost.value.textContent = +now.cost.toPrecision(3);
    const cheapest = every.reduce((a, b, k) => b.cost < a.cost - 1e-12 ? { ...b, k } : a, { ...every[0], k: 0 });
    best.replaceChildren(cheapest.answered ? `Lowest cost on these rows: ${+cheapest.cost.toPrecision(3)} per question, at ${thresholdText(cheapest.threshold)} (${percent(cheapest.answered)} answered). ` : `Lowest cost on these rows: answer nothing (${+cheapest.cost.toPrecision(3)} per question). `,
      button("Go there", () => { slider.value = count - cheapest.k; show(); }));
    if (!full) return;
    const errors = every.filter((cut) => known(cut.error)), mostError = Math.max(0.05, ...errors.map((cut) => cut.error)), mostCost = Math.max(0.01, ...every.map((cut) => cut.cost)) * 1.05;
    pictures.replaceChildren(
      curve(errors.map((cut) => [cut.answered, cut.error]), known(now.error) ? [now.answered, now.error] : null, { title: "wrong among the answered", most: mostError * 1.1 }),
      curve(every.map((cut) => [cut.answered, cut.cost]), [now.answered, now.cost], { title: "cost per question", most: mostCost, words: (value) => String(+value.toPrecision(2)) }));
  }
  slider.addEventListener("input", show);
  box.append(label, tiles, inputs, best);
  if (full) box.append(pictures);
  show();
  return box;
}
function readyThreshold() {
  const part = byId("threshold"), saved = byId("policies") ? JSON.parse(byId("policies").textContent) : [];
  const able = [...saved, ...entries].filter((entry) => entry.cuts.length), find = (key) => able.find((entry) => entry.key === key);
  if (!part) return;
  if (!able.length) { part.hidden = true; return; }
  const show = (key) => {
    const holder = byId("threshold-body"), entry = find(key);
    const names = able.map((one) => [one.key, one.name || nameOf(one)]);
    holder.replaceChildren();
    if (able.length > 1) holder.append(field("Confidence", choice(names, key, show)));
    holder.append(thresholdBox(entry, true), made("p", "Counts of the audited rows themselves: a threshold chosen here looks a little better than it will be. To have a promise, decide on fresh rows.", "note"));
  };
  part.addEventListener("toggle", () => { if (part.open && !byId("threshold-body").firstChild) show((able.find((entry) => !entry.group) || able[0]).key); });
}

// -- answer when the confidence is at least t -------------------------------------------------

const costs = { wrong: 10, asked: 1 };
// Cuts fall in their threshold; the last one answers everything.
function atCut(entry, place) {
  const total = entry.total || entry.cuts.at(-1)[1];
  const [threshold, rows, wrong, low, high] = place < 0 ? [1, 0, 0, null, null] : entry.cuts[place];
  const cost = total ? (wrong * costs.wrong + (total - rows) * costs.asked) / total : 0;
  return { place, threshold, rows, low, high, cost, answered: total ? rows / total : 0, error: rows ? wrong / rows : null };
}
const thresholdText = (value) => String(+value.toPrecision(4)).replace(/^(0\.\d)$/, "$10");
const tile = (value, words) => made("div", [made("b", value), made("span", words)], "tile");
const numberBox = (type, options) => Object.assign(made("input"), { type, min: 0, ...options });
function costBox(name, show) {
  const box = numberBox("number", { step: "any", value: costs[name] });
  box.oninput = () => { if (box.value >= 0 && box.value !== "") { costs[name] = +box.value; show(); } };
  return box;
}
function errorWords(now, level) {
  if (!known(now.error)) return "nothing is answered";
  return `wrong among the answered${known(now.low) ? ` (${+(100 * level).toPrecision(3)} % interval ${percent(now.low)} to ${percent(now.high)})` : ""}`;
}
function tradeOff(every, now) {
  const errors = every.filter((cut) => known(cut.error));
  const most = (values, least) => Math.max(least, ...values);
  return [
    curve(errors.map((cut) => [cut.answered, cut.error]), known(now.error) ? [now.answered, now.error] : null, { title: "wrong among the answered", most: most(errors.map((cut) => cut.error), 0.05) * 1.1 }),
    curve(every.map((cut) => [cut.answered, cut.cost]), [now.answered, now.cost], { title: "cost per question", most: most(every.map((cut) => cut.cost), 0.01) * 1.05, words: (value) => String(+value.toPrecision(2)) }),
  ];
}
function thresholdBox(entry, full) {
  const count = entry.cuts.length, first = entry.cuts.findIndex((cut) => cut[0] <= (entry.threshold ?? 0.8));
  const slider = numberBox("range", { max: count, step: 1, value: first < 0 ? 0 : count - 1 - first, ariaLabel: "Answer when confidence is at least" });
  const said = made("output"), tiles = made("div", null, "tiles"), best = made("p", null, "note"), pictures = made("div", null, "try");
  function show() {
    const every = Array.from({ length: count + 1 }, (_, k) => atCut(entry, k - 1)), now = every[count - slider.value];
    said.textContent = now.place < 0 ? "more than any here" : thresholdText(now.threshold);
    tiles.replaceChildren(
      tile(percent(now.answered), `answered (${(+now.rows.toFixed(1)).toLocaleString("en")} rows)`),
      tile(known(now.error) ? percent(now.error) : "\u2013", errorWords(now, entry.level)),
      tile(+now.cost.toPrecision(3), "cost per question"));
    const cheapest = every.reduce((a, b) => b.cost < a.cost - 1e-12 ? b : a), least = `${+cheapest.cost.toPrecision(3)} per question`;
    const words = cheapest.answered ? `${least}, at ${thresholdText(cheapest.threshold)} (${percent(cheapest.answered)} answered). ` : `answer nothing (${least}). `;
    best.replaceChildren(`Lowest cost on these rows: ${words}`, button("Go there", () => { slider.value = count - 1 - cheapest.place; show(); }));
    if (full) pictures.replaceChildren(...tradeOff(every, now));
  }
  slider.oninput = show;
  const prices = [field("A wrong answer costs", costBox("wrong", show)), field("Not answering costs", costBox("asked", show))];
  const label = made("label", ["Answer when confidence is at least ", said, made("br"), slider]);
  show();
  return made("div", [label, tiles, made("div", prices, "costs"), best, full ? pictures : null], "sliders");
}
function readyThreshold() {
  const part = byId("threshold"), able = [...dataOf("policies"), ...entries].filter((entry) => entry.cuts.length);
  if (!part) return;
  if (!able.length) { part.hidden = true; return; }
  const show = (entry) => {
    const names = able.map((one) => [one.key, one.name || nameOf(one)]);
    const which = choice(names, entry.key, (key) => show(able.find((one) => one.key === key)));
    byId("threshold-body").replaceChildren(...(able.length > 1 ? [field("Confidence", which)] : []), thresholdBox(entry, true),
      made("p", "Counts of the audited rows themselves: a threshold chosen here looks a little better than it will be. To have a promise, decide on fresh rows.", "note"));
  };
  part.addEventListener("toggle", () => { if (part.open && !byId("threshold-body").firstChild) show(able.find((entry) => !entry.group) || able[0]); });
}

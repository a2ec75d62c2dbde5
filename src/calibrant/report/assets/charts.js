// -- further charts: Vega is unpacked when the first of them is opened -------------------------

const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");
const specOf = (name) => JSON.parse(byId(name).textContent);
let vegaReady = null;
function vega() {
  vegaReady = vegaReady || (async () => {
    const packed = Uint8Array.from(atob(byId("vega-packed").textContent), (letter) => letter.charCodeAt(0));
    const text = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
    const script = document.createElement("script");
    script.textContent = text;
    document.head.append(script);
  })();
  return vegaReady;
}
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
  await vega();
  const name = holder.dataset.spec, room = Math.min(holder.closest(".body").clientWidth, window.innerWidth - 40);
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
  for (const box of document.querySelectorAll("details.later")) {
    box.addEventListener("toggle", async () => {
      if (box.open) for (const holder of box.querySelectorAll(".chart:not([data-drawn])")) await drawChart(holder);
    });
  }
  darkScheme.addEventListener("change", () => {
    for (const holder of document.querySelectorAll(".chart[data-drawn]")) drawChart(holder);
  });
}

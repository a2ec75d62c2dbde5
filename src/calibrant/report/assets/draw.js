// -- drawing ---------------------------------------------------------------------------------

function reliabilityPicture(entry, { size = 110, large = false } = {}) {
  const width = large ? 640 : size, height = large ? 470 : size;
  const left = large ? 50 : 5, right = large ? 14 : 5, top = large ? 14 : 5, foot = large ? 112 : 5;
  const x = (v) => left + v * (width - left - right), y = (v) => height - foot - v * (height - foot - top);
  const svg = mark("svg", { viewBox: `0 0 ${width} ${height}`, class: "picture", role: "img" });
  svg.setAttribute("aria-label", `Share of right answers against confidence: ${nameOf(entry)}`);
  if (large) scales(svg, x, y, width, height);
  else svg.append(mark("rect", { x: x(0), y: y(1), width: x(1) - x(0), height: y(0) - y(1), class: "edge" }));
  if (entry.band.length > 1) {
    const upper = entry.band.map(([c, , high]) => `${x(c).toFixed(1)},${y(high).toFixed(1)}`);
    const lower = entry.band.map(([c, low]) => `${x(c).toFixed(1)},${y(low).toFixed(1)}`).reverse();
    svg.append(mark("polygon", { points: [...upper, ...lower].join(" "), class: "band" }));
  }
  svg.append(mark("line", { x1: x(0), y1: y(0), x2: x(1), y2: y(1), class: "diagonal" }));
  svg.append(binMarks(entry, x, y, large));
  if (large) svg.append(countBars(entry, x, height - 44, 52));
  return svg;
}
function scales(svg, x, y, width, height) {
  for (const v of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(mark("line", { x1: x(0), x2: x(1), y1: y(v), y2: y(v), class: "grid" }));
    svg.append(mark("line", { x1: x(v), x2: x(v), y1: y(1), y2: height - 44, class: "grid" }));
    svg.append(mark("text", { x: x(0) - 8, y: y(v) + 4, "text-anchor": "end", class: "tick" }, percent(v)));
    svg.append(mark("text", { x: x(v), y: height - 27, "text-anchor": "middle", class: "tick" }, percent(v)));
  }
  svg.append(mark("text", { x: (x(0) + x(1)) / 2, y: height - 6, "text-anchor": "middle", class: "axis" }, "confidence"));
  svg.append(mark("text", { x: x(0) + 6, y: y(1) + 16, class: "axis halo" }, "share right"));
}
function binMarks(entry, x, y, large) {
  const group = mark("g", { class: entry.tone });
  const most = Math.max(1, ...entry.bins.map((bin) => bin[4]));
  // Bins of a few rows jump about: the line passes over them, their dots stay, small.
  const steady = entry.bins.filter((bin) => bin[4] >= Math.max(5, most / 50));
  group.append(mark("polyline", { points: steady.map(([c, r]) => `${x(c).toFixed(1)},${y(r).toFixed(1)}`).join(" "), class: "series faint" }));
  for (const [c, rate, low, high, n, lower, upper] of entry.bins) {
    const dot = mark("g");
    dot.append(mark("title", {}, `${percent(lower)} to ${percent(upper)}: right ${percent(rate)} (${percent(low)} to ${percent(high)}), ${n.toLocaleString("en")} rows`));
    if (large) dot.append(mark("line", { x1: x(c), x2: x(c), y1: y(low), y2: y(high), class: "stick" }));
    dot.append(mark("circle", { cx: x(c), cy: y(rate), r: (large ? 2.4 : 0.9) + (large ? 5 : 3.4) * Math.sqrt(n / most), class: "mark" }));
    group.append(dot);
  }
  return group;
}
function countBars(entry, x, foot, height) {
  const group = mark("g", { class: "first" }), most = Math.max(1, ...entry.histogram), step = 1 / (entry.histogram.length || 1);
  entry.histogram.forEach((count, place) => {
    if (!count) return;
    const bar = mark("rect", { x: x(place * step) + 0.5, y: foot - height * count / most, width: x(step) - x(0) - 1, height: height * count / most, class: "fill" });
    bar.append(mark("title", {}, `${count.toLocaleString("en")} rows`));
    group.append(bar);
  });
  return group;
}
// A curve with a dot on it; x and y are words and the reach of each axis.
function curvePicture(places, dot, { xTitle, yTitle, xMost = 1, yMost, xWords = percent, yWords = percent, tone = "first" }) {
  const width = 420, height = 250, left = 54, right = 12, top = 24, foot = 46;
  const x = (v) => left + v / xMost * (width - left - right), y = (v) => height - foot - v / (yMost || 1) * (height - foot - top);
  const svg = mark("svg", { viewBox: `0 0 ${width} ${height}`, class: "picture", role: "img" });
  svg.setAttribute("aria-label", `${yTitle} against ${xTitle}`);
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(mark("line", { x1: left, x2: width - right, y1: y(share * yMost), y2: y(share * yMost), class: "grid" }));
    svg.append(mark("text", { x: left - 8, y: y(share * yMost) + 4, "text-anchor": "end", class: "tick" }, yWords(share * yMost)));
    svg.append(mark("text", { x: x(share * xMost), y: height - 28, "text-anchor": "middle", class: "tick" }, xWords(share * xMost)));
  }
  svg.append(mark("text", { x: 0, y: 12, class: "axis" }, yTitle), mark("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle", class: "axis" }, xTitle));
  const group = mark("g", { class: tone });
  group.append(mark("polyline", { points: places.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" "), class: "series" }));
  if (dot) group.append(mark("circle", { cx: x(dot[0]), cy: y(dot[1]), r: 7, class: "ring" }));
  svg.append(group);
  return svg;
}

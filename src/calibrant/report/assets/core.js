"use strict";
// Model output reaches the page as text only: textContent, never innerHTML.
const byId = (name) => document.getElementById(name);
function made(tag, text, kind) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}
function mark(tag, attributes, words) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  if (words !== undefined) element.textContent = words;
  return element;
}
// A long name may break after a slash, a hyphen or an underscore.
function named(tag, text, kind) {
  const element = made(tag, undefined, kind);
  for (const part of text.split(/(?<=[/_-])/)) element.append(part, made("wbr"));
  return element;
}
function button(words, action, kind) {
  const element = made("button", words, kind || "button");
  element.type = "button";
  element.addEventListener("click", action);
  return element;
}
function field(words, control) {
  const label = made("label", words + " ");
  label.append(control);
  return label;
}
function choice(options, chosen, action) {
  const select = made("select");
  for (const [value, words] of options) {
    const option = made("option", words);
    option.value = value;
    option.selected = value === chosen;
    select.append(option);
  }
  select.addEventListener("input", () => action(select.value));
  return select;
}
function searchBox(action) {
  const input = made("input", undefined, "filter");
  input.type = "search";
  input.addEventListener("input", () => action(input.value.toLowerCase()));
  return input;
}
const known = (value) => value !== null && value !== undefined;
const percent = (share) => known(share) ? `${Math.abs(share * 100) < 10 && Math.abs(share * 100 - Math.round(share * 100)) > 0.05 ? (share * 100).toFixed(1) : Math.round(share * 100)} %` : "undefined";
const inPoints = (gap) => { const size = Math.abs(gap) * 100; return (gap < 0 ? "\u2212" : "+") + (size >= 0.05 && size < 1 ? size.toFixed(1) : size.toFixed(0)); };
const SIGNS = { over_confident: "\u25B2", under_confident: "\u25BC", miscalibrated: "\u25C6", calibrated: "\u2713", undecided: "?", not_tested: "\u00b7" };
const toneWords = (tone) => `${SIGNS[tone] || "\u00b7"} ${tone.replace(/_/g, "-")}`;
const entries = byId("entries") ? JSON.parse(byId("entries").textContent) : [];
const byKey = new Map(entries.map((entry) => [entry.key, entry]));
const several = (name) => new Set(entries.map((entry) => entry[name])).size > 1;
const HAS = { model: several("model"), method: several("method"), group: several("group") };
const methodWords = new Map(entries.map((entry) => [entry.method, entry.words]));
const methodName = (method) => methodWords.get(method) ? `${method} (${methodWords.get(method)})` : method;
const gapOf = (entry) => entry.metrics.confidence_gap ? entry.metrics.confidence_gap[0]
  : entry.metrics.mean_confidence ? entry.metrics.mean_confidence[0] - entry.metrics.accuracy[0] : null;
function nameOf(entry) {
  const names = [HAS.model || !HAS.method ? entry.model : "", HAS.method ? entry.method : "", entry.group];
  return names.filter(Boolean).join(" / ") || entry.model;
}

"use strict";
// Model output reaches the page as text only: textContent, never innerHTML.
function drawCharts() {
  for (const holder of document.querySelectorAll(".chart[data-spec]")) {
    const spec = JSON.parse(document.getElementById(holder.dataset.spec).textContent);
    // ast: expressions are interpreted, so the page needs no permission to evaluate code.
    vegaEmbed(holder, spec, { ast: true, actions: false, renderer: "svg" })
      .then(() => { holder.dataset.drawn = "yes"; })
      .catch((error) => { holder.textContent = "This chart could not be drawn: " + error.message; });
  }
}
function cellValue(row, place) {
  const text = row.cells[place].textContent.trim();
  const number = parseFloat(text.replace(/,/g, ""));
  return Number.isNaN(number) ? text : number;
}
function sortBy(table, place, header) {
  const up = header.getAttribute("aria-sort") !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", up ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => {
    const x = cellValue(a, place), y = cellValue(b, place);
    const order = typeof x === typeof y ? (x < y ? -1 : x > y ? 1 : 0) : typeof x === "number" ? -1 : 1;
    return up ? order : -order;
  });
  table.tBodies[0].append(...rows);
}
function readyTables() {
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((header, place) => {
      header.querySelector("button.sort").addEventListener("click", () => sortBy(table, place, header));
    });
  }
  for (const input of document.querySelectorAll("input.filter[data-table]")) {
    const rows = document.getElementById(input.dataset.table).tBodies[0].rows;
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(words);
    });
  }
}
function answerLine(answer) {
  const line = document.createElement("li");
  line.className = answer.correct === true ? "right" : answer.correct === false ? "wrong" : "";
  const text = document.createElement("bdi");
  text.textContent = answer.answer;
  line.append(text, ` (${answer.model}, ${answer.draws} draws)`);
  return line;
}
function questionBox(question) {
  const box = document.createElement("article");
  const text = document.createElement("bdi");
  text.textContent = question.text;
  const list = document.createElement("ul");
  list.append(...question.answers.map(answerLine));
  const scores = document.createElement("p");
  scores.className = "note";
  scores.textContent = question.scores;
  box.append(text, list, scores);
  return box;
}
function readyBrowser() {
  const holder = document.getElementById("questions");
  if (!holder) return;
  const data = JSON.parse(document.getElementById("questions-data").textContent);
  const input = document.getElementById("questions-filter"), count = document.getElementById("questions-count");
  const show = () => {
    const words = input.value.toLowerCase();
    const found = data.filter((q) => q.search.includes(words));
    holder.replaceChildren(...found.slice(0, 50).map(questionBox));
    count.textContent = `${found.length} of ${data.length} questions` + (found.length > 50 ? ", the first 50 shown" : "");
  };
  input.addEventListener("input", show);
  show();
}
drawCharts();
readyTables();
readyBrowser();

// -- tables ----------------------------------------------------------------------------------

function cellValue(row, place) {
  const cell = row.cells[place];
  return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
}
function foldRows(table) {
  [...table.tBodies[0].rows].forEach((row, place) => row.classList.toggle("beyond", place >= table.dataset.shown));
}
function sortBy(table, place, header) {
  const up = header.getAttribute("aria-sort") !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", up ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => {
    const x = cellValue(a, place), y = cellValue(b, place);
    // Words (undefined, not a probability) stay below the numbers in both directions.
    if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
    const order = x < y ? -1 : x > y ? 1 : 0;
    return up ? order : -order;
  });
  table.tBodies[0].append(...rows);
  foldRows(table);
}
function explanation(cell) {
  const table = cell.closest("table.sortable");
  if (!table || !table.tHead) return null;
  const header = table.tHead.rows[0].cells[cell.cellIndex], term = header && header.dataset.term && byId(header.dataset.term);
  if (!term) return null;
  const interval = cell.querySelector(".interval");
  const reading = interval ? `Here ${cell.firstChild.textContent}; the data are compatible with${interval.textContent.replace(/[[\]]/g, "").replace(",", " to")}.` : `Here: ${cell.textContent.trim()}.`;
  return { term, reading, row: cell.parentElement.cells[0].textContent.trim() };
}
function explainCell(cell) {
  const found = explanation(cell), box = byId("explained");
  if (!found) return;
  box.replaceChildren(made("p", `${found.row}. ${found.reading}`), ...[...found.term.childNodes].map((node) => node.cloneNode(true)));
  box.showPopover();
}
function readyTables() {
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((header, place) => {
      header.querySelector("button.sort").addEventListener("click", () => sortBy(table, place, header));
    });
    table.addEventListener("mouseover", (event) => {
      const cell = event.target.closest("td"), found = cell && !cell.title && explanation(cell);
      if (found) { cell.title = `${found.term.textContent} ${found.reading}`; cell.classList.add("told"); }
    });
    table.addEventListener("click", (event) => {
      const cell = event.target.closest("td");
      if (cell && !String(window.getSelection())) explainCell(cell);
    });
  }
  for (const input of document.querySelectorAll("input.filter[data-table]")) {
    const table = byId(input.dataset.table);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase();
      table.classList.toggle("filtered", words !== "");
      for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(words);
    });
  }
  for (const more of document.querySelectorAll("button.more[data-table]")) {
    const table = byId(more.dataset.table), closed = more.textContent;
    more.addEventListener("click", () => {
      const whole = table.classList.toggle("whole");
      more.setAttribute("aria-expanded", String(whole));
      more.textContent = whole ? `Show the first ${table.dataset.shown} rows` : closed;
    });
  }
}

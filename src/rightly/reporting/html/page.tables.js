"use strict";
// Tables sort by their headings, and what is folded is printed too.

function sort(table, column, heading) {
  const falling = heading.getAttribute("aria-sort") === "descending";
  const body = table.tBodies[0];
  const of = (row) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  };
  const order = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
  const rows = [...body.rows].sort((a, b) => (falling ? 1 : -1) * order(of(a), of(b)));
  for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", falling ? "ascending" : "descending");
  body.append(...rows);
}
for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    heading.querySelector("button").addEventListener("click", () => sort(table, column, heading));
  });
}
// Stacked on a phone by the style sheet, a table is still a table for who listens to it.
const ROLES = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
for (const table of document.querySelectorAll("table.stacks")) {
  for (const part of [table, ...table.querySelectorAll("*")]) {
    const role = part.scope === "row" ? "rowheader" : part.scope ? "columnheader" : ROLES[part.tagName];
    if (role) part.setAttribute("role", role);
  }
}

const unfolded = [];
addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("details:not([open])")) {
    one.open = true;
    unfolded.push(one);
  }
});
addEventListener("afterprint", () => {
  for (const one of unfolded.splice(0)) one.open = false;
});

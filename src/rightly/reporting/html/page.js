"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const slider = document.getElementById("at");
  const plot = { left: 50, right: 14, top: 12, bottom: 44, width: 340, height: 300 };

  const percent = (part, whole) => (whole ? (100 * part / whole).toFixed(1) + " %" : "–");

  function show() {
    const at = Number(slider.value);
    document.getElementById("at-value").textContent = (at / 100).toFixed(2);
    for (const cell of document.querySelectorAll("#at-table td[data-when]")) {
      const set = data[Number(cell.parentElement.dataset.set)];
      const { count, right } = set[cell.dataset.when];
      cell.textContent =
        cell.dataset.what === "coverage" ? percent(count[at], set.n) : percent(right[at], count[at]);
    }
    for (const dot of document.querySelectorAll("circle[data-set]")) {
      const set = data[Number(dot.dataset.set)];
      const { count, right } = set[dot.dataset.when];
      const top = Number(dot.closest("svg").dataset.top);
      const risk = count[at] ? 1 - right[at] / count[at] : 0;
      const across = plot.width - plot.left - plot.right;
      const up = plot.height - plot.top - plot.bottom;
      dot.setAttribute("cx", plot.left + across * count[at] / set.n);
      dot.setAttribute("cy", plot.height - plot.bottom - up * Math.min(1, risk / top));
      dot.style.visibility = count[at] ? "visible" : "hidden";
    }
  }
  slider.addEventListener("input", show);
  show();

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
  addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("details")) one.open = true;
  });
})();

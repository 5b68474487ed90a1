"use strict";
// The threshold: moved, entered, or found by a target accuracy or by costs.

const SETS = JSON.parse(document.getElementById("data").textContent).map((set) => ({
  before: decodeOutcomes(set.before),
  after: decodeOutcomes(set.after),
}));
const at = document.getElementById("at");
const atExact = document.getElementById("at-exact");
let threshold = Number(atExact.getAttribute("value"));

const percent = (share) => (100 * share).toFixed(1);
const NUMBER = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

function writeShare(cell, right, count) {
  const value = document.createElement("span");
  const small = document.createElement("small");
  value.textContent = count ? `${percent(right / count)} %` : "–";
  small.textContent = count ? exactInterval(right, count).map(percent).join("–") : "";
  cell.replaceChildren(value, document.createElement("br"), small);
}

function writeCost(cell, cost) {
  const small = document.createElement("small");
  const isExact = cost.low === cost.high;
  small.textContent = isExact ? "" : `${NUMBER.format(cost.low)} to ${NUMBER.format(cost.high)}`;
  const value = document.createElement("span");
  value.textContent = NUMBER.format(cost.value);
  cell.replaceChildren(value, document.createElement("br"), small);
}

// A button that moves the threshold to where the first k are accepted; it stays, and so does the focus.
function writeFound(cell, outcomes, k) {
  if (!k) return cell.replaceChildren("none");
  const button = cell.querySelector("button") || document.createElement("button");
  const found = k === outcomes.n ? 0 : writeThreshold(outcomes, k);
  button.type = "button";
  button.className = "found";
  button.textContent = String(found);
  button.onclick = () => moveTo(found);
  return button.parentElement === cell ? undefined : cell.replaceChildren(button);
}

function writeReason(cell, reason) {
  const small = document.createElement("small");
  small.className = "reason";
  small.textContent = reason;
  cell.append(document.createElement("br"), small);
}

// The number in a field, or null, marked there, where it does not fit.
function readNumber(field, fits) {
  const value = field.valueAsNumber;
  field.setAttribute("aria-invalid", String(!fits(value)));
  return fits(value) ? value : null;
}
const readShare = (field) => readNumber(field, (value) => value > 0 && value < 1);

function showThreshold() {
  for (const cell of document.querySelectorAll("#at-table td[data-when]")) {
    const outcomes = SETS[Number(cell.parentElement.dataset.set)][cell.dataset.when];
    const k = countAccepted(outcomes, threshold);
    if (cell.dataset.what === "coverage") cell.textContent = `${percent(k / outcomes.n)} %`;
    else writeShare(cell, outcomes.right[k], k);
  }
  for (const dot of document.querySelectorAll("circle[data-set]")) {
    const outcomes = SETS[Number(dot.dataset.set)][dot.dataset.when];
    const k = countAccepted(outcomes, threshold);
    const { top, box } = dot.closest("svg").dataset;
    const [left, right, lower, upper] = box.split(" ").map(Number);
    const risk = k ? 1 - outcomes.right[k] / k : 0;
    dot.setAttribute("cx", left + (right - left) * k / outcomes.n);
    dot.setAttribute("cy", lower - (lower - upper) * Math.min(1, risk / Number(top)));
    dot.style.visibility = k ? "visible" : "hidden";
  }
  showCosts();
}

function showTarget() {
  const note = document.getElementById("target-error");
  const accuracy = readShare(document.getElementById("target"));
  const level = readShare(document.getElementById("confidence-level"));
  const invalid = accuracy === null || level === null;
  note.textContent = invalid ? "Enter numbers between 0 and 1, such as 0.98 and 0.95." : "";
  if (invalid) return;
  for (const row of document.querySelectorAll("#target-table tbody tr")) {
    const outcomes = SETS[Number(row.dataset.set)].after;
    const maxError = Number((1 - accuracy).toPrecision(12));
    const k = countGuaranteed(outcomes, maxError, level);
    writeFound(row.cells[1], outcomes, k);
    if (!k) writeReason(row.cells[1], tellNeeded(outcomes, maxError, level));
    row.cells[2].textContent = `${percent(k / outcomes.n)} %`;
    writeShare(row.cells[3], outcomes.right[k], k);
  }
}

// Only computed where costs change, not where the threshold moves.
function findOptimism(outcomes, costs) {
  const key = Object.values(costs).join(" ");
  if (outcomes.optimism?.key !== key) {
    outcomes.optimism = { key, value: estimateOptimism(outcomes, costs) };
  }
  return outcomes.optimism.value;
}

function showCosts() {
  const note = document.getElementById("cost-error-note");
  const costs = {};
  for (const name of ["error", "review", "gain"]) {
    costs[name] = readNumber(document.getElementById(`cost-${name}`), (value) => value >= 0);
  }
  const invalid = Object.values(costs).includes(null) || costs.error <= costs.review;
  note.textContent = invalid ? "Enter costs from 0 on; an error must cost more than a review." : "";
  if (invalid) return;
  for (const row of document.querySelectorAll("#cost-table tbody tr")) {
    const outcomes = SETS[Number(row.dataset.set)].after;
    const least = countForLeastCost(outcomes, costs);
    writeFound(row.cells[1], outcomes, least);
    const shift = findOptimism(outcomes, costs);
    const { value, low, high } = computeCost(outcomes, least, costs);
    writeCost(row.cells[2], { value: value + shift, low: low + shift, high: high + shift });
    [countAccepted(outcomes, threshold), outcomes.n, 0].forEach((k, i) => {
      writeCost(row.cells[3 + i], computeCost(outcomes, k, costs));
    });
  }
}

function moveTo(value) {
  threshold = value;
  at.value = String(value);
  atExact.value = String(value);
  atExact.setAttribute("aria-invalid", "false");
  showThreshold();
}

at.addEventListener("input", () => moveTo(at.valueAsNumber));
atExact.addEventListener("input", () => {
  const value = readNumber(atExact, (number) => number >= 0 && number <= 1);
  if (value === null) return;
  threshold = value;
  at.value = String(value);
  showThreshold();
});
for (const name of ["target", "confidence-level"]) {
  document.getElementById(name).addEventListener("input", showTarget);
}
for (const name of ["error", "review", "gain"]) {
  document.getElementById(`cost-${name}`).addEventListener("input", showCosts);
}
for (const part of document.querySelectorAll(".scripted")) part.hidden = false;
for (const part of document.querySelectorAll(".static")) part.hidden = true;
moveTo(threshold);
showTarget();

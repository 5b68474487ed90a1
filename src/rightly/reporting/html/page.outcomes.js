"use strict";
// What accepting from a threshold means, for confidences in falling order.

function decodeOutcomes(stored) {
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const Type = stored.type === "f4" ? Float32Array : Float64Array;
  const confidence = new Type(bytes(stored.confidence).buffer);
  const bits = bytes(stored.right);
  const right = new Uint32Array(confidence.length + 1); // among the first k
  for (let k = 0; k < confidence.length; k++) {
    right[k + 1] = right[k] + ((bits[k >> 3] >> (7 - (k & 7))) & 1);
  }
  return { confidence, right, n: confidence.length };
}

// How many samples have a confidence of at least the threshold.
function countAccepted(outcomes, threshold) {
  let low = 0;
  let high = outcomes.n;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (outcomes.confidence[middle] >= threshold) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Samples of one confidence are accepted together.
function canStopAt(outcomes, k) {
  return k === outcomes.n || k === 0 || outcomes.confidence[k] < outcomes.confidence[k - 1];
}

// The shortest number at or below the k-th confidence that accepts as many.
function writeThreshold(outcomes, k) {
  const exact = outcomes.confidence[k - 1];
  for (let digits = 3; digits < 16; digits++) {
    const short = Math.floor(exact * 10 ** digits) / 10 ** digits;
    if (short <= exact && countAccepted(outcomes, short) === k) return short;
  }
  return exact;
}

"use strict";
// What errors and reviews cost, and where they cost least, as Decision.least_cost has it.

const MOST_RESAMPLES = 1000;
const MOST_DRAWS = 1e7; // of all resamples: the more samples, the less is corrected

// Cost of 1,000 images where k are accepted, with a 95 % interval.
function computeCost(outcomes, k, costs) {
  const shares = [outcomes.right[k], k - outcomes.right[k], outcomes.n - k].map((x) => x / outcomes.n);
  const values = [-costs.gain, costs.error, costs.review];
  const sum = (of) => shares.reduce((total, share, i) => total + share * of(values[i]), 0);
  const mean = sum((value) => value);
  const half = 1.959964 * Math.sqrt(sum((value) => (value - mean) ** 2) / outcomes.n);
  return { value: 1000 * mean, low: 1000 * (mean - half), high: 1000 * (mean + half) };
}

// How many to accept at the least cost; of equal costs the fewest.
function countForLeastCost(outcomes, costs) {
  let best = 0;
  let least = Infinity;
  for (let k = 0; k <= outcomes.n; k++) {
    if (!canStopAt(outcomes, k)) continue;
    const wrong = k - outcomes.right[k];
    const cost = costs.error * wrong + costs.review * (outcomes.n - k) - costs.gain * outcomes.right[k];
    if (cost < least) [best, least] = [k, cost];
  }
  return best;
}

// Numbers from 0 to 1 that look random, the same each time (mulberry32).
function seedRandom(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// By how much the least cost of 1,000 images is too low for having been chosen on these samples: what
// is chosen on a resample is dearer on the samples it was drawn from (bootstrap: Efron, 1983).
function estimateOptimism(outcomes, costs) {
  const { n, right } = outcomes;
  const added = Float64Array.from({ length: n }, (_, k) =>
    (right[k + 1] > right[k] ? -costs.gain : costs.error) - costs.review);
  const ends = Uint8Array.from({ length: n }, (_, k) => Number(canStopAt(outcomes, k + 1)));
  const resamples = Math.max(20, Math.min(MOST_RESAMPLES, Math.floor(MOST_DRAWS / n)));
  const random = seedRandom(0);
  const times = new Uint16Array(n);
  let optimism = 0;
  for (let resample = 0; resample < resamples; resample++) {
    times.fill(0);
    for (let k = 0; k < n; k++) times[Math.floor(random() * n)]++;
    let [drawn, own, least, there] = [0, 0, 0, 0];
    for (let k = 0; k < n; k++) {
      drawn += times[k] * added[k];
      own += added[k];
      if (ends[k] && drawn < least) [least, there] = [drawn, own];
    }
    optimism += (there - least) / n / resamples;
  }
  return Math.max(1000 * optimism, 0);
}

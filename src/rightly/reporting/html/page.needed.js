"use strict";
// How many samples a guarantee needs that these are too few for, as Decision.guarantee tells it.

const POWER = 0.8; // probability with which so many would pass
const MOST_NEEDED = 10_000_000;

// The most errors with which n samples pass; -1 where not even none do.
function mostErrors(n, maxError, level) {
  let low = -1;
  let high = n; // fails: of n errors among n the tail is 1
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (binomialTail(middle, n, maxError) <= level) low = middle;
    else high = middle;
  }
  return low;
}

// To three digits.
function roundUp(count) {
  const unit = 10 ** Math.max(String(count).length - 3, 0);
  return Math.ceil(count / unit) * unit;
}

// In words: about how many would do, or why none would.
function tellNeeded(outcomes, maxError, confidenceLevel) {
  const { n, right } = outcomes;
  const level = 1 - confidenceLevel;
  const errorAt = (k) => (k - right[k]) / k;
  // Fewer than in which one error is within maxError tell nothing about it.
  const enough = Math.ceil(1 / maxError);
  if (n < enough && right[n] < n) return "too few samples to tell how many would do";
  const least = Math.min(n, enough);
  let lowest = 1;
  for (let k = least; k <= n; k++) lowest = Math.min(lowest, errorAt(k));
  if (lowest > maxError) {
    return `at least ${percent(lowest)} % are wrong wherever ${least.toLocaleString("en")} or more are accepted`;
  }
  const allowed = new Map();
  const passes = (count) => {
    for (const [start, own] of listStarts(count, maxError, level)) {
      const key = `${start} ${own}`;
      if (!allowed.has(key)) allowed.set(key, mostErrors(start, maxError, own));
      // As deep as a rank may by chance lie: by a standard deviation.
      const deep = start + Math.sqrt(start * (1 - start / count));
      const rank = Math.max(least, Math.min(n, Math.ceil(deep * (n / count))));
      const share = errorAt(rank);
      const power = share > 0 ? binomialTail(allowed.get(key), start, share) : Number(allowed.get(key) >= 0);
      if (power >= POWER) return true;
    }
    return false;
  };
  let low = Math.max(n, countWithoutError(maxError, level) - 1);
  let high = low + 1;
  const most = Math.max(high, MOST_NEEDED);
  if (!passes(most)) return `errors come too close to ${NUMBER.format(100 * maxError)} % at every threshold`;
  while (!passes(high)) [low, high] = [high, Math.min(2 * high, most)];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (passes(middle)) high = middle;
    else low = middle;
  }
  return `about ${roundUp(high).toLocaleString("en")} samples would do`;
}

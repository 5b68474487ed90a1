"use strict";
// A guaranteed threshold, found as Decision.guarantee finds it: Learn then Test along ranks that do not
// depend on labels, each handing its level on when it passes.

const MOST_RANKS = 2000;

// Probability of at most so many errors among n, each with this probability.
function binomialTail(errors, n, share) {
  if (errors < 0) return 0;
  return errors >= n ? 1 : incompleteBeta(n - errors, errors + 1, 1 - share);
}

// The fewest samples that pass with so many errors.
function fewestSamples(errors, maxError, level) {
  let step = 1;
  while (binomialTail(errors, errors + step, maxError) > level) step *= 2;
  let low = errors + Math.floor(step / 2);
  let high = errors + step;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (binomialTail(errors, middle, maxError) <= level) high = middle;
    else low = middle;
  }
  return high;
}

// The fewest samples that pass if none of them is wrong.
function countWithoutError(maxError, level) {
  let count = Math.max(Math.floor(Math.log(level) / Math.log1p(-maxError)), 1);
  while ((1 - maxError) ** count > level) count++;
  return count;
}

// The first rank, doubles of it and all, in rising order, with their shares of the level.
function listStarts(n, maxError, level) {
  const first = countWithoutError(maxError, level);
  if (n < first) return new Map();
  const starts = [];
  for (let rank = first; rank < n; rank *= 2) starts.push(rank);
  starts.push(n);
  const size = (1 - maxError) ** first; // what the first test takes of the level, exactly
  const later = starts.length - 1;
  const levels = new Map(starts.map((rank) => [rank, Math.max(level - size, 0) / Math.max(later, 1)]));
  levels.set(first, later ? size : level);
  return levels;
}

// The ranks to be tested, in rising order, with the level that each starts with.
function listRanks(n, maxError, level) {
  const levels = listStarts(n, maxError, level);
  if (!levels.size) return levels;
  const size = levels.values().next().value;
  const most = Math.max(Math.floor(maxError * n), 1);
  const errors = new Set([most]);
  for (let k = 0; k < MOST_RANKS; k++) errors.add(Math.floor(most ** (k / (MOST_RANKS - 1))));
  for (const count of errors) {
    const rank = fewestSamples(count, maxError, size);
    if (rank <= n && !levels.has(rank)) levels.set(rank, 0);
  }
  return new Map([...levels].sort((a, b) => a[0] - b[0]));
}

// How many to accept so that at most maxError of them is wrong, at this confidence level; 0 for none.
function countGuaranteed(outcomes, maxError, confidenceLevel) {
  const level = 1 - confidenceLevel;
  let found = 0;
  let inherited = 0;
  for (const [rank, own] of listRanks(outcomes.n, maxError, level)) {
    const count = countAccepted(outcomes, outcomes.confidence[rank - 1]);
    const at = inherited + own;
    const passes = binomialTail(count - outcomes.right[count], count, maxError) <= at;
    inherited = passes ? at : 0;
    if (inherited) found = count;
  }
  return found;
}

"use strict";
// Exact intervals of shares (Clopper and Pearson, 1934), as rightly.decisions.exact_interval has them.

const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
  -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
  1.5056327351493116e-7,
];

function logGamma(x) {
  let sum = LANCZOS[0];
  for (let k = 1; k < 9; k++) sum += LANCZOS[k] / (x - 1 + k);
  const t = x + 6.5;
  return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

// Regularised incomplete beta function, by its continued fraction (Lentz's method).
function incompleteBeta(a, b, x) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(b, a, 1 - x);
  const log = logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x);
  const away = (value) => (Math.abs(value) < 1e-300 ? 1e-300 : value);
  let c = 1;
  let d = 1 / away(1 - (a + b) * x / (a + 1));
  let fraction = d;
  for (let m = 1; m < 100000; m++) {
    const even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    let change = 1;
    for (const term of [even, odd]) {
      d = 1 / away(1 + term * d);
      c = away(1 + term / c);
      change = c * d;
      fraction *= change;
    }
    if (Math.abs(change - 1) < 1e-14) break;
  }
  return Math.exp(log) * fraction / a;
}

function inverseBeta(a, b, share) {
  let low = 0;
  let high = 1;
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (incompleteBeta(a, b, middle) < share) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

function exactInterval(right, n, level = 0.95) {
  const tail = (1 - level) / 2;
  return [
    right > 0 ? inverseBeta(right, n - right + 1, tail) : 0,
    right < n ? inverseBeta(right + 1, n - right, 1 - tail) : 1,
  ];
}

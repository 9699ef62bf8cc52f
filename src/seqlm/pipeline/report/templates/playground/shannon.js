// What the ranks of guesses say about the entropy of a text (Shannon 1951, "Prediction and entropy of printed English").
"use strict";

// Returns the bounds on the bits per character of someone who needed ranks[i] guesses for character i.
//
// q_i is the share of characters guessed at the i-th guess. The upper bound is the entropy of the q_i; the lower one is
// the sum of i (q_i - q_{i+1}) log2 i, his equation (17).
function shannonBounds(ranks, numSymbols) {
  const q = new Float64Array(numSymbols + 2);
  for (const rank of ranks) q[rank] += 1 / ranks.length;
  let lower = 0, upper = 0;
  for (let i = 1; i <= numSymbols; i++) {
    lower += i * (q[i] - q[i + 1]) * Math.log2(i);
    if (q[i] > 0) upper -= q[i] * Math.log2(q[i]);
  }
  return {lower, upper};
}

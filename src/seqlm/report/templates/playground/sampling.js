// How a character is chosen: temperature, top-k and top-p, from a seed.
"use strict";

// A small generator of random numbers in [0, 1): the same seed gives the same numbers (mulberry32, public domain).
function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = state + 0x6D2B79F5 >>> 0;
    let mixed = Math.imul(state ^ state >>> 15, state | 1);
    mixed ^= mixed + Math.imul(mixed ^ mixed >>> 7, mixed | 61);
    return ((mixed ^ mixed >>> 14) >>> 0) / 2 ** 32;
  };
}

// Returns the probabilities with which characters are drawn. The unknown character, token 0, is never drawn.
// Temperature 0 is the likeliest character; topK keeps the k likeliest; topP the fewest that together have this much.
function drawnWith(probs, {temperature, topK, topP}) {
  const found = new Float64Array(probs.length), likeliest = argmax(probs, 1);
  if (temperature === 0) {
    found[likeliest] = 1;
    return found;
  }
  for (let i = 1; i < probs.length; i++) found[i] = Math.exp((Math.log(probs[i]) - Math.log(probs[likeliest])) / temperature);
  if (topK < found.length - 1) {
    const smallest = [...found.subarray(1)].sort((a, b) => b - a)[topK - 1];
    for (let i = 1; i < found.length; i++) if (found[i] < smallest) found[i] = 0;
  }
  if (topP < 1) {
    const total = sum(found);
    let before = 0;
    for (const i of order(found)) {
      const weight = found[i];
      if (before >= topP * total) found[i] = 0;
      before += weight;
    }
  }
  const total = sum(found);
  return found.map(weight => weight / total);
}

// Returns places from the largest value to the smallest; of equal values the first comes first.
const order = values => Array.from(values, (_, i) => i).sort((a, b) => values[b] - values[a] || a - b);

function draw(probs, number) {
  let cumulative = 0, last = 1;
  for (let i = 1; i < probs.length; i++) {
    if (probs[i] === 0) continue;
    cumulative += probs[i];
    last = i;
    if (cumulative > number) return i;
  }
  return last;
}

// Returns the tokens that a model writes after some others, each the likeliest one.
function greedy(model, tokens, length) {
  let state = tokens.reduce((before, token) => model.read(before, token), model.start());
  return Array.from({length}, () => {
    const token = argmax(model.probs(state), 1);
    state = model.read(state, token);
    return token;
  });
}

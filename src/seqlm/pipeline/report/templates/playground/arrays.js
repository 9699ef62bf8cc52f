// Numbers from text: whole numbers and weights of any number of bits; and sums over arrays. The first script of the
// worker: it makes all of them strict.
"use strict";

// Returns arrays that follow one another in a text to the base of 64; each is described by its length and its bits per number.
function arraysOf(text, described) {
  const bytes = atob(text);
  let place = 0, held = 0, numHeld = 0;
  return described.map(({length, bits}) => {
    const found = new Uint32Array(length);
    for (let i = 0; i < length; i++) {
      for (; numHeld < bits; numHeld += 8) held = held * 256 + bytes.charCodeAt(place++);
      const unit = 2 ** (numHeld -= bits);
      found[i] = held / unit;
      held %= unit;
    }
    return found;
  });
}

// Weights have one bit for the sign, five for the exponent, and the others for the digits: 16 bits are half precision.
function weightsFrom(codes, bits) {
  const one = 2 ** (bits - 6);
  return Float32Array.from(codes, code => {
    const digits = code % one, rest = Math.floor(code / one), exponent = rest % 32, sign = rest >= 32 ? -1 : 1;
    return sign * (exponent ? 2 ** (exponent - 15) * (1 + digits / one) : 2 ** -14 * digits / one);
  });
}

function sum(values) {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

function normalised(values) {
  const total = sum(values);
  return values.map(value => value / total);
}

function softmax(logits) {
  const largest = logits.reduce((a, b) => Math.max(a, b));
  return normalised(logits.map(logit => Math.exp(logit - largest)));
}

// Returns places from the largest value to the smallest; of equal values the first comes first.
const order = values => Array.from(values, (_, i) => i).sort((a, b) => values[b] - values[a] || a - b);
const mean = values => sum(values) / values.length;
const variance = (values, center = mean(values)) => mean(values.map(value => (value - center) ** 2));

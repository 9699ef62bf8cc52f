// Numbers from text: whole numbers and weights of any number of bits; and sums over arrays. The first script of the
// worker: it makes all of them strict.
"use strict";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";
const DIGIT_OF = new Uint8Array(128);
for (let digit = 0; digit < ALPHABET.length; digit++) DIGIT_OF[ALPHABET.charCodeAt(digit)] = digit;

// Five characters are the digits of a number to the base of 85, which is four bytes; the last ones may be fewer.
function bytesOf(text) {
  const rest = (5 - text.length % 5) % 5, padded = text + "~".repeat(rest), bytes = new Uint8Array(padded.length / 5 * 4);
  for (let from = 0, to = 0; from < padded.length; from += 5, to += 4) {
    let number = 0;
    for (let i = from; i < from + 5; i++) number = number * 85 + DIGIT_OF[padded.charCodeAt(i)];
    for (let i = 3; i >= 0; i--, number = Math.floor(number / 256)) bytes[to + i] = number % 256;
  }
  return bytes.subarray(0, bytes.length - rest);
}

// Returns arrays that follow one another in a text; each is described by its length and its bits per number.
function arraysOf(text, described) {
  const bytes = bytesOf(text);
  let place = 0, held = 0, numHeld = 0;
  return described.map(({length, bits}) => {
    const found = new Uint32Array(length);
    for (let i = 0; i < length; i++) {
      for (; numHeld < bits; numHeld += 8) held = held * 256 + bytes[place++];
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

function argmax(values, from = 0) {
  let best = from;
  for (let i = from + 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}

function sum(values) {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

function softmax(logits) {
  let largest = -Infinity;
  for (const logit of logits) if (logit > largest) largest = logit;
  const found = logits.map(logit => Math.exp(logit - largest)), total = sum(found);
  return found.map(value => value / total);
}

// Returns places from the largest value to the smallest; of equal values the first comes first.
const order = values => Array.from(values, (_, i) => i).sort((a, b) => values[b] - values[a] || a - b);
const mean = values => sum(values) / values.length;
const variance = (values, center = mean(values)) => mean(values.map(value => (value - center) ** 2));

// Numbers from base64: arrays of whole numbers, and weights in three precisions.
"use strict";

// For each type, its bytes per number, and how bytes become numbers.
const ARRAY_TYPES = {
  uint8: [1, bytes => bytes],
  uint16: [2, bytes => new Uint16Array(bytes.buffer)],
  uint32: [4, bytes => new Uint32Array(bytes.buffer)],
  float32: [4, bytes => new Float32Array(bytes.buffer)],
  float24: [3, fromThreeBytes],
  float16: [2, bytes => fromHalf(new Uint16Array(bytes.buffer))],
};

function bytesOf(id) {
  const text = atob(document.getElementById(id).textContent.trim()), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// Returns the arrays that follow one another in a block of the page; each has a type and a length.
function arraysOf(id, types, lengths) {
  const bytes = bytesOf(id);
  let start = 0;
  return types.map((type, index) => {
    const [size, decode] = ARRAY_TYPES[type], end = start + size * lengths[index];
    const array = decode(bytes.slice(start, end));
    start = end;
    return array;
  });
}

// Single precision without its last byte, which comes first.
function fromThreeBytes(bytes) {
  const all = new Uint8Array(bytes.length / 3 * 4);
  for (let from = 0, to = 1; from < bytes.length; from += 3, to += 4) all.set(bytes.subarray(from, from + 3), to);
  return new Float32Array(all.buffer);
}

// Half precision has one bit for the sign, five for the exponent and ten for the digits.
function fromHalf(halves) {
  const values = new Float32Array(halves.length);
  for (let i = 0; i < halves.length; i++) {
    const sign = halves[i] & 0x8000 ? -1 : 1, exponent = halves[i] >> 10 & 31, digits = halves[i] & 1023;
    values[i] = sign * (exponent ? 2 ** (exponent - 25) * (1024 + digits) : 2 ** -24 * digits);
  }
  return values;
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

const mean = values => sum(values) / values.length;
const variance = (values, center = mean(values)) => mean(values.map(value => (value - center) ** 2));

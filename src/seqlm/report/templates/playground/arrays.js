// Numbers from base64: arrays of whole numbers, and weights in single or half precision.
"use strict";

const ARRAY_TYPES = {uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, float32: Float32Array, float16: Uint16Array};

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
    const kind = ARRAY_TYPES[type], size = kind.BYTES_PER_ELEMENT * lengths[index];
    const array = new kind(bytes.slice(start, start + size).buffer);
    start += size;
    return type === "float16" ? fromHalf(array) : array;
  });
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

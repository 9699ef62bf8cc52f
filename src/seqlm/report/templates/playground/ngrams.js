// n-gram models: Laplace and Kneser-Ney, from the counts of all n-grams of the training text.
//
// A model has three methods: start() gives the state before any character, read(state, token) the state after one more, and
// probs(state) the probability of each character. Networks also have units(state), the hidden units of their
// last layer.
// A state never changes, so a page can keep the states of every place of a text.
"use strict";

// The n-grams of one order: those that continue row r of the order below are the rows first[r] to first[r + 1] - 1.
class Table {
  constructor(below, children, tokens, counts) {
    Object.assign(this, {below, tokens, counts, length: tokens.length});
    this.first = new Uint32Array(children.length + 1);
    for (let row = 0; row < children.length; row++) this.first[row + 1] = this.first[row] + children[row];
  }

  // Returns the row of an n-gram from the row of its prefix and its last token; -1 if it was never seen.
  find(prefix, token) {
    if (!this.below) return token;
    if (prefix < 0) return -1;
    let low = this.first[prefix], high = this.first[prefix + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tokens[middle] < token) low = middle + 1; else high = middle;
    }
    return low < this.first[prefix + 1] && this.tokens[low] === token ? low : -1;
  }

  // For each row, the row of its last n - 1 tokens in the table below.
  get suffixes() {
    if (this.cachedSuffixes) return this.cachedSuffixes;
    const found = new Int32Array(this.length), {below} = this;
    if (below) {
      for (let prefix = 0; prefix < below.length; prefix++) {
        for (let row = this.first[prefix]; row < this.first[prefix + 1]; row++) {
          found[row] = below.below ? below.find(below.suffixes[prefix], this.tokens[row]) : this.tokens[row];
        }
      }
    }
    return this.cachedSuffixes = found;
  }

  // For each context, the sum of a value over the n-grams that continue it.
  sumByContext(value) {
    const sums = new Float64Array(this.first.length - 1);
    for (let context = 0; context < sums.length; context++) {
      for (let row = this.first[context]; row < this.first[context + 1]; row++) sums[context] += value(row);
    }
    return sums;
  }
}

// P_n(x | c) = share(c, x) + weight(c) P_below(x). A context that was never seen has weight 1.
class Interpolated {
  constructor(smoothing, order, tables, backoff) {
    Object.assign(this, {order, tables, backoff, name: `char-${smoothing}-${order}`});
  }

  start() { return []; }

  read(state, token) { return this.order > 1 ? [...state, token].slice(1 - this.order) : []; }

  probs(state) {
    let result = this.unigram().slice();
    for (let n = 2; n <= Math.min(this.order, state.length + 1); n++) {
      if (this.backoff === "unigram") result = this.unigram().slice();
      const context = this.rowOf(state.slice(state.length - n + 1));
      if (context < 0) continue;
      const table = this.tables[n - 1], weight = this.weight(n, context);
      for (let i = 0; i < result.length; i++) result[i] *= weight;
      for (let row = table.first[context]; row < table.first[context + 1]; row++) {
        result[table.tokens[row]] += this.share(n, row, context);
      }
    }
    return result;
  }

  rowOf(tokens) {
    let row = tokens[0];
    for (let n = 2; n <= tokens.length && row >= 0; n++) row = this.tables[n - 1].find(row, tokens[n - 1]);
    return row;
  }

  unigram() {
    if (this.cachedUnigram) return this.cachedUnigram;
    const size = this.tables[0].length, found = new Float64Array(size), weight = this.weight(1, 0);
    for (let token = 0; token < size; token++) found[token] = this.share(1, token, 0) + weight / size;
    return this.cachedUnigram = this.withUnknown(found);
  }

  withUnknown(probs) { return probs; }
}

// Laplace smoothing, equation (8.3.5): share n(c, x) / (n(c) + e) and weight e / (n(c) + e).
class Laplace extends Interpolated {
  constructor(order, tables, settings) {
    super("laplace", order, tables, "unigram");
    this.epsilons = settings.epsilons;
  }

  total(n, context) {
    const table = this.tables[n - 1];
    table.totals ??= table.sumByContext(row => table.counts[row]);
    return table.totals[context] + this.epsilons[n - 1];
  }

  share(n, row, context) { return this.total(n, context) > 0 ? this.tables[n - 1].counts[row] / this.total(n, context) : 0; }
  weight(n, context) { return this.total(n, context) > 0 ? this.epsilons[n - 1] / this.total(n, context) : 1; }
}

const FALLBACK_DISCOUNTS = [0, 0.5, 1, 1.5];

// The discounts for counts of 1, 2 and 3 or more, from how many n-grams have the counts 1 to 4.
function discountsOf(adjusted) {
  const [, ones, twos, threes, fours] = [0, 1, 2, 3, 4].map(k => adjusted.reduce((total, count) => total + (count === k), 0));
  if (!(ones && twos && threes)) return FALLBACK_DISCOUNTS;
  const y = ones / (ones + 2 * twos);
  const found = [0, 1 - 2 * y * twos / ones, 2 - 3 * y * threes / twos, 3 - 4 * y * fours / threes];
  return found.every((discount, count) => discount >= 0 && discount <= count) ? found : FALLBACK_DISCOUNTS;
}

// One order of a Kneser-Ney model: its counts, the sums over contexts, the discounts, and the weights that they free.
function orderStatistics(table, adjusted) {
  const discounts = discountsOf(adjusted), discount = row => discounts[Math.min(adjusted[row], 3)];
  const totals = table.sumByContext(row => adjusted[row]), weights = table.sumByContext(discount);
  for (let context = 0; context < totals.length; context++) weights[context] = totals[context] ? weights[context] / totals[context] : 1;
  return {totals, weights, adjusted, discount};
}

// Below the highest order, an n-gram counts how many different characters were seen before it.
function lowerStatistics(tables, n, starts) {
  const {suffixes} = tables[n], adjusted = new Uint32Array(tables[n - 1].length);
  for (const row of suffixes) adjusted[row] += 1;
  adjusted[starts[n - 1]] += 1;
  return orderStatistics(tables[n - 1], adjusted);
}

// Interpolated modified Kneser-Ney smoothing (Chen and Goodman 1998).
class KneserNey extends Interpolated {
  constructor(order, tables, starts, lower, unknown) {
    super("kneser-ney", order, tables, "lower");
    Object.assign(this, {starts, lower, unknown});
  }

  of(n) {
    if (n < this.order) return this.lower[n - 1] ??= lowerStatistics(this.tables, n, this.starts);
    return this.highest ??= orderStatistics(this.tables[n - 1], this.tables[n - 1].counts);
  }

  share(n, row, context) {
    const {adjusted, discount, totals} = this.of(n);
    return totals[context] > 0 ? (adjusted[row] - discount(row)) / totals[context] : 0;
  }

  weight(n, context) { return this.of(n).weights[context]; }

  // The unknown character gets the share of the characters that were seen only once (Good 1953).
  withUnknown(probs) {
    if (this.unknown !== "good_turing") return probs;
    const once = this.tables[0].counts.slice(1).reduce((total, count) => total + (count === 1), 0);
    const share = once / Math.max(this.of(1).totals[0], once + 1);
    const found = probs.map(p => p * (1 - share));
    found[0] += share;
    return found;
  }
}

// The models of each smoothing method that have one of the `orders`.
function ngramModels({tables: described, starts, settings, orders}, blocks) {
  const tables = [], lower = [], {laplace, "kneser-ney": kneserNey} = settings;
  described.forEach((arrays, index) => tables.push(new Table(tables[index - 1], ...arraysOf(blocks[`counts-${index + 1}`], arrays))));
  return [
    ...laplace ? orders.filter(n => n <= laplace.epsilons.length).map(n => new Laplace(n, tables, laplace)) : [],
    ...kneserNey ? orders.map(n => new KneserNey(n, tables, starts, lower, kneserNey.unknown)) : [],
  ];
}

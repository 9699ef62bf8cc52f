// Kneser-Ney models of n-grams, from the counts that seqlm/ngrams/models/kneser_ney.py discounts.
//
// A model has three methods: start() gives the state before any character, read(state, token) the state after one more, and
// probs(state) the probability of each character. Networks also have units(state), the hidden units of their last layer.
// A state never changes, so a page can keep the states of every place of a text.

// The n-grams of one order: those that continue row r of the order below are the rows first[r] to first[r + 1] - 1.
class Table {
  constructor(children, tokens) {
    this.tokens = tokens;
    this.first = new Uint32Array(children.length + 1);
    children.forEach((size, row) => { this.first[row + 1] = this.first[row] + size; });
  }

  // Returns the row of an n-gram from the row of its prefix and its last token; -1 if it was never seen.
  find(prefix, token) {
    let low = this.first[prefix], high = this.first[prefix + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tokens[middle] < token) low = middle + 1; else high = middle;
    }
    return low < this.first[prefix + 1] && this.tokens[low] === token ? low : -1;
  }
}

// Interpolated modified Kneser-Ney smoothing (Chen and Goodman 1998): from order 2 on, P(x | c) is
// (count(c, x) - discount) / total(c) + weight(c) P_below(x). A context that was never seen leaves all to the order below.
class KneserNey {
  constructor({name, order, unigram}, levels) {
    Object.assign(this, {name, order, unigram: Float64Array.from(unigram), levels});
  }

  start() { return []; }

  read(state, token) { return this.order > 1 ? [...state, token].slice(1 - this.order) : []; }

  probs(state) {
    const result = this.unigram.slice();
    for (let n = 2; n <= Math.min(this.order, state.length + 1); n++) {
      const context = this.rowOf(state.slice(state.length - n + 1));
      if (context < 0) continue;
      const {table, highest, lower} = this.levels[n], {counts, discounts} = n === this.order ? highest : lower;
      const rows = Array.from({length: table.first[context + 1] - table.first[context]}, (_, i) => table.first[context] + i);
      const discount = row => discounts[Math.min(counts[row], 3)], total = sum(rows.map(row => counts[row]));
      if (!total) continue;
      const weight = sum(rows.map(discount)) / total;
      for (let i = 0; i < result.length; i++) result[i] *= weight;
      for (const row of rows) result[table.tokens[row]] += (counts[row] - discount(row)) / total;
    }
    return result;
  }

  // The row of a context of n tokens in the table of order n; that of one token is the token.
  rowOf(tokens) {
    let row = tokens[0];
    for (let n = 2; n <= tokens.length && row >= 0; n++) row = this.levels[n].table.find(row, tokens[n - 1]);
    return row;
  }
}

function ngramModels({models, levels: described}, blocks) {
  const levels = [];
  for (const {order, arrays, highest, lower} of described) {
    const [children, tokens, ...counts] = arraysOf(blocks[`ngrams-${order}`], arrays);
    levels[order] = {table: new Table(children, tokens)};
    if (highest) levels[order].highest = {counts: counts.shift(), discounts: highest};
    if (lower) levels[order].lower = {counts: counts.shift(), discounts: lower};
  }
  return models.map(model => new KneserNey(model, levels));
}

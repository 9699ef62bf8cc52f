// A small transformer with rotary positions; it keeps the keys and values of its window.
"use strict";

const ROTARY_BASE = 1000, NORM_EPSILON = 1e-5;

// The error function (Abramowitz and Stegun 7.1.26), to 1.5e-7.
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const tail = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t * Math.exp(-x * x);
  return Math.sign(x) * (1 - tail);
}

const gelu = x => x * (1 + erf(x / Math.SQRT2)) / 2;

function layerNorm(vector, weight, bias) {
  const center = mean(vector), deviation = Math.sqrt(variance(vector, center) + NORM_EPSILON);
  return vector.map((x, i) => (x - center) / deviation * weight[i] + bias[i]);
}

class Transformer extends StoredNetwork {
  start() { return {window: [], caches: Array.from({length: this.described.num_layers}, () => [])}; }

  // If the window is full, its last half is read again.
  read(state, token) {
    const {num_steps: size} = this.described;
    if (state.window.length === size) {
      const kept = state.window.slice(size - Math.floor(size / 2));
      state = kept.reduce((before, one) => this.append(before, one), this.start());
    }
    return this.append(state, token);
  }

  append({window, caches}, token) {
    const weights = this.weights, size = this.shape("embedding.weight")[1], position = window.length;
    let hidden = Float64Array.from(weights["embedding.weight"].subarray(token * size, (token + 1) * size));
    const add = part => { hidden = hidden.map((value, i) => value + part[i]); };
    const extended = caches.map((cache, index) => {
      const of = name => [weights[`layers.${index}.${name}.weight`], weights[`layers.${index}.${name}.bias`]];
      const linear = (name, vector) => { const [weight, bias] = of(name); return product(weight, vector, bias); };
      const projected = linear("attention_input", layerNorm(hidden, ...of("attention_norm")));
      const [query, key, value] = [0, 1, 2].map(part => projected.subarray(part * size, (part + 1) * size));
      this.rotate(query, position);
      this.rotate(key, position);
      const all = [...cache, {key, value}];
      add(linear("attention_output", this.attend(query, all)));
      const inner = linear("mlp_input", layerNorm(hidden, ...of("mlp_norm"))).map(gelu);
      add(linear("mlp_output", inner));
      return all;
    });
    return {window: [...window, token], caches: extended, hidden: layerNorm(hidden, weights["norm.weight"], weights["norm.bias"])};
  }

  // Turns pairs of components, i and i + half, by the angle of a position.
  rotate(vector, position) {
    const {num_heads: heads} = this.described, size = vector.length / heads, half = Math.floor(size / 2);
    for (let head = 0; head < heads; head++) {
      for (let i = 0; i < half; i++) {
        const angle = position * ROTARY_BASE ** (-i / half), a = head * size + i, b = a + half, [x, y] = [vector[a], vector[b]];
        vector[a] = x * Math.cos(angle) - y * Math.sin(angle);
        vector[b] = x * Math.sin(angle) + y * Math.cos(angle);
      }
    }
  }

  attend(query, all) {
    const {num_heads: heads} = this.described, size = query.length / heads, mixed = new Float64Array(query.length);
    for (let start = 0; start < query.length; start += size) {
      const scores = Float64Array.from(all, ({key}) => {
        let total = 0;
        for (let i = start; i < start + size; i++) total += query[i] * key[i];
        return total / Math.sqrt(size);
      });
      const shares = softmax(scores);
      all.forEach(({value}, place) => { for (let i = start; i < start + size; i++) mixed[i] += shares[place] * value[i]; });
    }
    return mixed;
  }

  probs({hidden}) {
    const weights = this.weights;
    return softmax(product(weights["output.weight"] ?? weights["embedding.weight"], hidden, weights["output.bias"]));
  }

  units({hidden}) { return hidden; }
}

const networkModels = (described, blocks) => described.map(network =>
  new (network.model === "transformer" ? Transformer : RecurrentNetwork)(network, blocks[`weights-${network.name}`]));

// Recurrent networks: rnn, gru and lstm as PyTorch defines them. The chapter's RNN is an rnn without a second bias.
//
// A state is never changed: reading a character makes a new one.

const sigmoid = x => 1 / (1 + Math.exp(-x)), relu = x => x > 0 ? x : 0;

// Returns matrix (rows x columns) times vector, plus a bias. Four sums at once are three times as fast as one.
function product(matrix, vector, bias) {
  const columns = vector.length, fours = columns - columns % 4, found = new Float64Array(bias.length);
  for (let row = 0, place = 0; row < found.length; row++) {
    let a = bias[row], b = 0, c = 0, d = 0, column = 0;
    for (; column < fours; column += 4, place += 4) {
      a += matrix[place] * vector[column];
      b += matrix[place + 1] * vector[column + 1];
      c += matrix[place + 2] * vector[column + 2];
      d += matrix[place + 3] * vector[column + 3];
    }
    for (; column < columns; column++, place++) a += matrix[place] * vector[column];
    found[row] = a + b + c + d;
  }
  return found;
}

// Each cell takes what a layer gets from its input and from its last state, both with their biases.
const CELLS = {
  rnn: activation => (input, recurrent) => ({hidden: input.map((value, i) => activation(value + recurrent[i]))}),
  gru: () => (input, recurrent, {hidden: before}) => {
    const size = before.length;
    return {hidden: before.map((old, i) => {
      const reset = sigmoid(input[i] + recurrent[i]), update = sigmoid(input[size + i] + recurrent[size + i]);
      const candidate = Math.tanh(input[2 * size + i] + reset * recurrent[2 * size + i]);
      return candidate + update * (old - candidate);
    })};
  },
  lstm: () => (input, recurrent, {hidden: before, memory: memoryBefore}) => {
    const size = before.length, memory = new Float64Array(size);
    const hidden = before.map((_, i) => {
      const gate = block => input[block * size + i] + recurrent[block * size + i];
      memory[i] = sigmoid(gate(1)) * memoryBefore[i] + sigmoid(gate(0)) * Math.tanh(gate(2));
      return sigmoid(gate(3)) * Math.tanh(memory[i]);
    });
    return {hidden, memory};
  },
};

class RecurrentNetwork {
  constructor(described, text) {
    Object.assign(this, {name: described.name, described, text});
  }

  // Layers with weights as PyTorch has them, a row for each unit of each gate; decoded when they are first needed.
  get layers() {
    if (this.cachedLayers) return this.cachedLayers;
    const {names, arrays, model, activation, num_layers: numLayers} = this.described;
    const codes = arraysOf(this.text, arrays), cell = CELLS[model](activation === "relu" ? relu : Math.tanh);
    const weights = Object.fromEntries(names.map((name, index) => [name, weightsFrom(codes[index], arrays[index].bits)]));
    this.embedding = weights["embedding.weight"];
    this.output = {weight: weights["output.weight"] ?? this.embedding, bias: weights["output.bias"]};
    return this.cachedLayers = Array.from({length: numLayers}, (_, layer) => {
      const of = name => weights[`layers.${layer}.${name}_l0`], weight = of("weight_hh"), bias = of("bias_hh");
      return {size: weight.length / bias.length, cell, inputWeight: of("weight_ih"), inputBias: of("bias_ih"), weight, bias};
    });
  }

  start() {
    return this.layers.map(({size}) => ({hidden: new Float64Array(size), memory: new Float64Array(size)}));
  }

  read(state, token) {
    let below = null;
    return this.layers.map((layer, index) => {
      const input = below ? product(layer.inputWeight, below, layer.inputBias) : this.enter(layer, token);
      const after = layer.cell(input, product(layer.weight, state[index].hidden, layer.bias), state[index]);
      below = after.hidden;
      return after;
    });
  }

  // What the first layer gets from a character: a one-hot vector selects a column of its weights.
  enter({inputWeight, inputBias}, token) {
    const columns = inputWeight.length / inputBias.length;
    if (!this.embedding) return Float64Array.from(inputBias, (bias, row) => bias + inputWeight[row * columns + token]);
    return product(inputWeight, this.embedding.subarray(token * columns, (token + 1) * columns), inputBias);
  }

  probs(state) { return softmax(product(this.output.weight, state.at(-1).hidden, this.output.bias)); }
  units(state) { return state.at(-1).hidden; }
}

const networkModels = (described, blocks) => described.map(network => new RecurrentNetwork(network, blocks[`weights-${network.name}`]));

// What a model has read of a text so far.

const SLICE_MS = 40;
const pause = () => new Promise(resolve => { setTimeout(resolve); });

class Reading {
  // A text begins as if it followed `begin`, the characters that part texts.
  constructor(model, begin) {
    this.model = model;
    this.states = [begin.reduce((state, token) => model.read(state, token), model.start())];
    this.ids = [];
    this.bits = [];
  }

  // Reads a text; what was read of the same beginning is kept. After each slice of time it looks whether it should stop:
  // then it returns false. `onSlice` is told the share of the text that was read.
  async read(ids, isCurrent = () => true, onSlice = () => {}) {
    let same = 0;
    while (same < ids.length && same < this.ids.length && ids[same] === this.ids[same]) same += 1;
    this.ids.length = this.bits.length = same;
    this.states.length = same + 1;
    for (let begin = performance.now(); this.ids.length < ids.length;) {
      if (performance.now() - begin > SLICE_MS) {
        onSlice(this.ids.length / ids.length);
        await pause();
        if (!isCurrent()) return false;
        begin = performance.now();
      }
      this.append(ids[this.ids.length]);
    }
    return true;
  }

  append(token) {
    this.bits.push(-Math.log2(this.probs()[token]));
    this.states.push(this.model.read(this.states.at(-1), token));
    this.ids.push(token);
  }

  // The probability of each character after the last one.
  probs() {
    const state = this.states.at(-1);
    if (this.cachedState !== state) [this.cachedState, this.cachedProbs] = [state, this.model.probs(state)];
    return this.cachedProbs;
  }

  // Mean bits of the characters that the vocabulary has.
  meanBits() {
    const known = this.bits.filter((_, i) => this.ids[i] !== 0);
    return known.length ? mean(known) : null;
  }
}

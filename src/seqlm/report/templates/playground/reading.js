// A text as the models read it, and what each model has read of it so far.
"use strict";

const SLICE_MS = 12;
const pause = () => new Promise(resolve => { setTimeout(resolve); });

// Cleans a text like the corpus, but keeps a blank at its end, so that a word can be finished.
function cleaned(text, {normalise, separator}) {
  const lines = text.replace(/\r\n?/g, "\n");
  if (normalise === "letters") return lines.replace(/[^A-Za-z]+/g, " ").toLowerCase().trimStart();
  return separator === " " ? lines.replace(/\n/g, " ") : lines;
}

// Returns the characters of a text in the groups that a reader sees as one: emoji and letters with accents may be several.
function graphemes(text) {
  const parts = Intl.Segmenter ? Array.from(new Intl.Segmenter().segment(text), part => part.segment) : Array.from(text);
  return parts.map(part => Array.from(part));
}

const visible = char => ({" ": "␣", "\n": "⏎", "\t": "⇥"})[char] ?? char;

class Reading {
  constructor(model) {
    this.model = model;
    this.forget(0);
  }

  // Keeps what was read of the first `length` characters.
  forget(length) {
    this.ids = (this.ids ?? []).slice(0, length);
    this.states = (this.states ?? [this.model.start()]).slice(0, length + 1);
    this.bits = (this.bits ?? []).slice(0, length);
    this.cachedProbs = null;
  }

  // Reads a text, in slices of time so that the page stays alive; what was read of the same beginning is kept.
  // Stops when isCurrent() is false, and returns whether the text was read to its end.
  async read(ids, isCurrent = () => true) {
    let same = 0;
    while (same < ids.length && same < this.ids.length && ids[same] === this.ids[same]) same += 1;
    this.forget(same);
    for (let begin = performance.now(); this.ids.length < ids.length;) {
      if (!isCurrent()) return false;
      if (performance.now() - begin > SLICE_MS) {
        await pause();
        begin = performance.now();
        continue;
      }
      this.append(ids[this.ids.length]);
    }
    return isCurrent();
  }

  append(token) {
    // The first character is not scored: every model begins with one.
    this.bits.push(this.ids.length ? -Math.log2(this.probs()[token]) : null);
    this.states.push(this.model.read(this.states.at(-1), token));
    this.ids.push(token);
    this.cachedProbs = null;
  }

  // The probability of each character after the last one; before the first one, the model's own zero state is asked.
  probs() { return this.cachedProbs ??= this.model.probs(this.states.at(-1)); }

  // Mean bits of the characters that the vocabulary has, without the first one.
  meanBits() {
    const scored = this.bits.filter((bits, i) => bits !== null && this.ids[i] !== 0);
    return scored.length ? sum(scored) / scored.length : null;
  }
}

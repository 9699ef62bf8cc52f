// Starts the page.
"use strict";

const data = JSON.parse(find("data").textContent);
const app = {
  data, idOf: new Map(data.tokens.map((token, id) => [token, id])), readings: {}, measured: {}, ranked: {}, unit: null,
  slots: [null, null, null], pickers: [[], [], []], views: [], text: "", groups: [], ids: [], version: 0, writing: 0, written: null,
  // The beginning of a split, as tokens.
  passage(split) {
    const {type, length} = data.passages[split];
    return (this.passages ??= {})[split] ??= arraysOf(split, [type], [length])[0];
  },
  // The probability of each character, without context.
  frequency() { return (this.byName.get("char-kneser-ney-1") ?? this.models[0]).probs([]); },
};
app.models = [...ngramModels(data.ngrams, data.tokens.length), ...networkModels(data.networks)];
app.byName = new Map(app.models.map(model => [model.name, model]));

// The n-gram model of the highest order, the network that predicts best, and the chapter's RNN.
function defaultSlots() {
  const networks = app.models.filter(model => model.described);
  networks.sort((a, b) => (data.bits[a.name] ?? Infinity) - (data.bits[b.name] ?? Infinity));
  const ngrams = app.models.filter(model => !model.described).at(-1)?.name, best = networks[0]?.name;
  const chapter = networks.find(({name, described}) => described.model === "scratch" && name !== best) ?? networks[1];
  const found = [ngrams ?? best, best ?? app.models.filter(model => !model.described).at(-2)?.name ?? ngrams, chapter?.name];
  return [found[0], found[1], found[2] ?? null];
}

function showLeftOut() {
  find("left-out").replaceChildren(...data.leftOut.map(({name, why}) => make("li", {textContent: `${labelOf(name)}: ${why}`})));
  find("left-out-heading").hidden = !data.leftOut.length;
  const said = {float32: "as trained (single precision)", float24: "rounded to 24 bits", float16: "rounded to 16 bits (half precision)"};
  const named = type => data.networks.filter(one => one.type === type).map(one => labelOf(one.name)).join("; ");
  find("precision").replaceChildren(...Object.keys(said).filter(named).map(type => make("li", {textContent: `${named(type)}: weights ${said[type]}`})));
  find("rounding").hidden = !data.networks.length;
}

// The beginning of the test text, up to the end of a word.
function example() {
  const opening = Array.from(app.passage("test").slice(0, 80), id => id ? data.tokens[id] : "").join("");
  return opening.slice(0, opening.lastIndexOf(" ", 60) + 1 || 60);
}

function reset() {
  defaultSlots().forEach((name, slot) => setModel(slot, name));
  for (const id of ["temperature", "top-k", "top-p", "seed"]) find(id).value = find(id).defaultValue;
  replaceText(example());
}

showTyping();
prepareInside();
prepareHistory();
prepareGame();
showLeftOut();
find("reset").addEventListener("click", reset);
find("words-backwards").addEventListener("click", () => replaceText(example().split(" ").reverse().join(" ")));
find("all-backwards").addEventListener("click", () => replaceText(graphemes(example()).reverse().flat().join("")));
reset();
for (const element of document.querySelectorAll(".needs-script")) element.hidden = false;
app.readyAfter = performance.now();

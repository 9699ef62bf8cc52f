// Making elements. Text is always set as text, so a text with markup in it stays text.
"use strict";

const find = id => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element && !name.startsWith("aria")) element[name] = value; else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const fixed = (value, digits = 2) => value === null || !Number.isFinite(value) ? "–" : value.toFixed(digits);
const percent = p => p >= 0.0995 ? `${(100 * p).toFixed(0)}\u00a0%` : p >= 0.00095 || p === 0 ? `${(100 * p).toFixed(1)}\u00a0%` : "<\u00a00.1\u00a0%";
const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// A passage whose characters are shaded. shade(start, length) returns what to set for the characters from a place on.
function passage(groups, shade) {
  let start = 0;
  return groups.map(group => {
    const {className = "", title = "", background = ""} = shade(start, group.length);
    const element = make("i", {className, title, textContent: group.map(char => char === "\n" ? "⏎\n" : char).join("")});
    if (background) element.style.backgroundColor = background;
    element.dataset.place = start;
    start += group.length;
    return element;
  });
}

const BITS_PER_SHADE = 1.2, DARKEST = 9;
const shadeOf = bits => `s${Math.min(Math.floor(bits / BITS_PER_SHADE), DARKEST)}`;

// A choice of one model: its family and, for n-grams, the order. `changed` is called with the model's name.
function modelPicker(label, models, changed, hasNone = false) {
  const of = family => models.filter(model => model.family === family), families = [...new Set(models.map(model => model.family))];
  const select = make("select", {}, ...families.map(name => make("option", {value: name, textContent: labelOf(of(name)[0])})));
  if (hasNone) select.append(make("option", {value: "", textContent: "(none)"}));
  const order = make("input", {type: "range", min: 1, step: 1}), shown = make("output");
  const orderLabel = make("label", {}, "order ", order, " ", shown), about = make("span", {className: "note"});
  const chosen = () => of(select.value)[order.value - 1] ?? of(select.value)[0];
  const report = () => changed(select.value ? chosen().name : null);
  select.addEventListener("change", () => { order.value = of(select.value).length; report(); });
  order.addEventListener("input", report);
  return {
    element: make("div", {className: "picker"}, make("label", {}, `${label} `, select), orderLabel, about),
    // Shows a model that was chosen here or elsewhere.
    show(name) {
      const model = models.find(one => one.name === name);
      select.value = model ? model.family : "";
      orderLabel.hidden = !(model?.order > 0);
      if (model?.order > 0) {
        order.max = of(model.family).length;
        order.value = model.order;
        shown.textContent = model.order;
      }
      about.textContent = model ? describe(model) : "";
    },
  };
}

const FAMILY_NAMES = {uniform: "uniform (knows nothing)", laplace: "n-grams, Laplace", "kneser-ney": "n-grams, Kneser-Ney"};
const KIND_NAMES = {scratch: "the chapter’s RNN", rnn: "the framework’s RNN", gru: "GRU", lstm: "LSTM", transformer: "transformer"};

// The name of a model's family for a reader: a run has a name of its own, and a kind.
function labelOf(model) {
  if (!model.described) return FAMILY_NAMES[model.family];
  const kind = KIND_NAMES[model.described.model];
  return kind.toLowerCase() === model.name ? kind : `${kind}: ${model.name}`;
}

function describe(model) {
  const bits = app.data.bits[model.described ? model.name : `char-${model.name}`];
  const judged = bits === undefined ? "" : `; ${fixed(bits)} bits per character on the test text`;
  if (model.described) {
    const {model: kind} = model.described, {maxTokens} = app.data.history[model.name] ?? {};
    const saw = maxTokens ? `trained on ${maxTokens.toLocaleString("en")} characters` : "trained on all of the training text";
    return `${KIND_NAMES[kind]}, ${saw}${judged}`;
  }
  const looks = {0: "every character equally likely", 1: "counts single characters"}[model.order];
  return `${looks ?? `counts what followed the last ${model.order === 2 ? "character" : `${model.order - 1} characters`}`}${judged}`;
}

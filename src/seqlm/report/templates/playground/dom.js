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

const fixed = (value, digits = 2) => value === null || !Number.isFinite(value) ? "–" : value.toFixed(digits).replace("-", "−");
const percent = p => p >= 0.0995 ? `${(100 * p).toFixed(0)}\u00a0%` : p >= 0.00095 || p === 0 ? `${(100 * p).toFixed(1)}\u00a0%` : "<\u00a00.1\u00a0%";
const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// A passage whose characters are shaded. shade(start, length) returns the properties of the characters from a place on.
function passage(groups, shade) {
  let start = 0;
  return groups.map(group => {
    const textContent = group.map(char => char === "\n" ? "⏎\n" : char).join("");
    const element = make("i", {...shade(start, group.length), textContent});
    element.dataset.place = start;
    start += group.length;
    return element;
  });
}

const BITS_PER_SHADE = 1.2, DARKEST = 9;
const shadeOf = bits => `s${Math.min(Math.floor(bits / BITS_PER_SHADE), DARKEST)}`;

// The name of a model or of a run as in the table of results.
const labelOf = name => app.data.labels[name] ?? name;
const options = names => names.map(value => make("option", {value, textContent: labelOf(value)}));

// How the kinds of networks with the same equations differ, and how minibatches were cut.
const CODE = {scratch: "its equations written out (section 8.5)", rnn: "the framework’s layer (section 8.6)"};
const MINIBATCHES = {random: "minibatches from random places", sequential: "minibatches that continue one another"};

// Says what a model is; `bits` is its score on the test text.
function describe({name, described, order}) {
  const bits = app.data.bits[name], judged = bits === undefined ? [] : [`${fixed(bits)} bits per character on the test text`];
  if (described) {
    const {trainedOn, sampling} = app.data.history[name], saw = `${trainedOn.toLocaleString("en")} characters`;
    return [name, ...CODE[described.model] ? [CODE[described.model]] : [], `trained on ${saw}, ${MINIBATCHES[sampling]}`, ...judged].join("; ");
  }
  const looks = ["every character equally likely", "counts single characters", "counts what followed the last character"];
  return [name, looks[order] ?? `counts what followed the last ${order - 1} characters`, ...judged].join("; ");
}

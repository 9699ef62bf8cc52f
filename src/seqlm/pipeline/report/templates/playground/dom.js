// What all parts of the page use: elements, texts as people read them, and the worker.
"use strict";

const find = id => document.getElementById(id);
const data = JSON.parse(find("data").textContent);
const idOf = new Map(data.tokens.map((token, id) => [token, id]));

// Text is always set as text, so a text with markup in it stays text.
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
const visible = char => ({" ": "space", "\n": "line end", "\t": "tab"})[char] ?? char;
const labelOf = name => data.labels[name] ?? name;
const options = names => names.map(value => make("option", {value, textContent: labelOf(value)}));

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

// Cleans a text like the corpus, but keeps a blank at its end, so that a word can be finished. If the models read lines
// joined by nothing, a space joins those that are not empty.
function cleaned(text) {
  const lines = text.normalize("NFC").split(/\r\n?|[\n\v\f\u0085\u2028\u2029]/), last = lines.length - 1;
  const letters = line => line.replace(/[^A-Za-z]+/g, " ").toLowerCase().trimStart();
  const clean = data.normalise !== "letters" ? lines
    : lines.map((line, place) => place < last ? letters(line).trimEnd() : letters(line));
  return clean.filter((line, place) => data.joined || line || place === last).join(data.joined || " ");
}

// Returns the characters of a text in the groups that a reader sees as one: emoji and letters with accents may be several.
function graphemes(text) {
  const parts = Intl.Segmenter ? Array.from(new Intl.Segmenter().segment(text), part => part.segment) : Array.from(text);
  return parts.map(part => Array.from(part));
}

// The worker is made from scripts in this page. Of each kind of job, only the answers to the newest request are used.
const asked = {}, hear = {};
const computing = [...document.querySelectorAll("script.computing")].map(script => script.textContent).join("\n");
const blocks = Object.fromEntries([...document.querySelectorAll("script.block")].map(({id, textContent}) => [id, textContent]));
const worker = new Worker(URL.createObjectURL(new Blob([computing], {type: "text/javascript"})));
worker.postMessage({data, blocks});
worker.onerror = event => { find("failed").hidden = false; find("failed").textContent += ` ${event.message ?? ""}`; };
worker.onmessage = ({data: answer}) => { if (answer.number === asked[answer.job]) hear[answer.job](answer); };

function ask(job, request, listen) {
  hear[job] = listen;
  worker.postMessage({job, number: asked[job] = (asked[job] ?? 0) + 1, ...request});
}

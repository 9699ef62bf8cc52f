// Sections 1 and 2: the text as several models see it, and what may come next.
"use strict";

const MAX_ROWS = 20, MAX_TEXT = 2000, TAIL = 60;

function showTyping() {
  find("slots").replaceChildren(...app.slots.map((_, slot) => {
    const view = app.views[slot] = {
      about: make("p", {className: "note"}),
      score: make("p", {className: "score", role: "status"}),
      text: make("p", {className: "passage", dir: "auto", tabIndex: 0, role: "group"}),
    };
    view.text.setAttribute("aria-label", `The text, shaded by model ${slot + 1}; arrow keys move from character to character`);
    walkable(view.text);
    return make("div", {className: "slot"}, modelPicker(slot, slot > 1), view.about, view.score, view.text);
  }));
  find("writers").replaceChildren(...[0, 1].map(slot => {
    const write = length => make("button", {type: "button", textContent: `write ${length}`, onclick: () => writeWith(slot, length)});
    return make("div", {}, modelPicker(slot), make("p", {className: "buttons"}, write(1), write(100)));
  }));
  find("text").addEventListener("input", () => { forgetWriting(); setText(find("text").value); });
  for (const id of ["temperature", "top-k", "top-p"]) find(id).addEventListener("input", showNext);
  find("seed").addEventListener("input", forgetWriting);
  find("top-k").max = find("top-k").defaultValue = Math.min(app.data.tokens.length - 1, 50);
  find("stop").addEventListener("click", stopWriting);
  find("undo").addEventListener("click", undoWriting);
}

// A choice of the model of a slot; the same slot may be chosen at several places.
function modelPicker(slot, hasNone = false) {
  const none = hasNone ? [make("option", {value: "", textContent: "(none)"})] : [];
  const select = make("select", {}, ...options(app.models.map(model => model.name)), ...none);
  select.addEventListener("change", () => choose(slot, select.value || null));
  app.pickers[slot].push(select);
  return make("label", {className: "picker"}, `Model ${slot + 1}`, select);
}

// Arrow keys, a pointer or a finger show the bits of one character under each model.
function walkable(element) {
  let place = 0;
  const show = target => {
    place = Number(target.dataset.place);
    for (const other of element.querySelectorAll(".here")) other.classList.remove("here");
    target.classList.add("here");
    find("bits").textContent = bitsAt(target);
  };
  const bitsAt = target => {
    const found = app.slots.map((name, other) => {
      const there = app.views[other].text.querySelector(`[data-place="${target.dataset.place}"]`);
      return name && there ? `${labelOf(name)}: ${there.title}` : "";
    });
    return `“${visible(target.textContent)}” ${found.filter(Boolean).join(" · ")}`;
  };
  for (const kind of ["pointerover", "click"]) {
    element.addEventListener(kind, event => { if (event.target.matches("i")) show(event.target); });
  }
  element.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    const all = [...element.children], now = all.findIndex(child => Number(child.dataset.place) === place);
    const next = all[Math.max(0, Math.min(all.length - 1, now + step))];
    if (next) show(next);
    event.preventDefault();
  });
}

function setModel(slot, name) {
  app.slots[slot] = name;
  for (const picker of app.pickers[slot]) picker.value = name ?? "";
  app.views[slot].about.textContent = name ? describe(app.byName.get(name)) : "";
}

function choose(slot, name) {
  setModel(slot, name);
  refresh();
}

// Shows the end of the text where models write; what they have written is bold.
function showTail() {
  const start = app.written ? Math.min(app.text.length, cleaned(app.written.before, app.data).length) : app.text.length;
  find("tail").replaceChildren(start > TAIL ? "…" : "", app.text.slice(Math.max(0, start - TAIL), start), make("b", {textContent: app.text.slice(start)}), "▏");
}

// Takes a text as it was typed or written; everything that shows it follows.
function setText(text) {
  app.text = cleaned(text.slice(0, MAX_TEXT), app.data);
  app.groups = graphemes(app.text);
  app.ids = Array.from(app.text, char => app.idOf.get(char) ?? 0);
  refresh();
}

const readingOf = name => app.readings[name] ??= new Reading(app.byName.get(name));

// Reads the text with every chosen model, the quick ones first, and shows each as soon as it is ready.
async function refresh() {
  const version = app.version += 1, isCurrent = () => app.version === version;
  const unknown = app.ids.filter(id => id === 0).length;
  find("unknown").textContent = unknown ? `Characters not in the models’ alphabet: ${unknown}. They are read as unknown and not counted.` : "";
  showTail();
  for (const [slot, name] of app.slots.entries()) {
    const view = app.views[slot];
    view.text.hidden = view.score.hidden = !name;
    if (!name) continue;
    if (!await readingOf(name).read(app.ids, isCurrent)) return;
    showReading(view, readingOf(name));
    if (slot === 1) showNext();
  }
  await showInside(isCurrent);
}

function showReading({score, text}, reading) {
  const bits = reading.meanBits();
  score.replaceChildren(make("b", {textContent: `${fixed(bits)} bits`}), ` per character, perplexity ${fixed(bits === null ? null : 2 ** bits)}`);
  text.replaceChildren(...passage(app.groups, (start, length) => {
    const all = reading.bits.slice(start, start + length);
    if (reading.ids.slice(start, start + length).includes(0)) return {className: "unknown", title: "unknown"};
    if (all.includes(null)) return {title: "not scored"};
    return {className: shadeOf(sum(all)), title: `${fixed(sum(all), 1)} bits`};
  }));
}

function sampling() {
  const topK = Number(find("top-k").value);
  return {
    temperature: Number(find("temperature").value),
    topK: topK === Number(find("top-k").max) ? Infinity : topK,
    topP: Number(find("top-p").value),
  };
}

// Shows the probabilities after the text: as a line what the model says, as a bar what is drawn from. The longest is as wide as
// its column.
function showNext() {
  const settings = sampling();
  find("temperature-shown").textContent = settings.temperature === 0 ? "0: always the likeliest" : fixed(settings.temperature, 1);
  find("top-k-shown").textContent = settings.topK === Infinity ? "all" : settings.topK;
  find("top-p-shown").textContent = settings.topP === 1 ? "1: all" : fixed(settings.topP);
  const isReady = slot => readingOf(app.slots[slot]).ids.length === app.ids.length;
  if (!isReady(0) || !isReady(1)) return;
  const raw = [0, 1].map(slot => readingOf(app.slots[slot]).probs()), drawn = raw.map(probs => drawnWith(probs, settings));
  const likeliest = order(raw[0].map((p, i) => i ? p + raw[1][i] : -1)).slice(0, Math.min(MAX_ROWS, raw[0].length - 1));
  const largest = Math.max(...likeliest.flatMap(token => [...raw, ...drawn].map(probs => probs[token])));
  const bar = slot => token => {
    const box = make("span", {className: "bar"}), fill = make("span", {className: "fill"}), line = make("span", {className: "mark"});
    fill.style.width = `${100 * drawn[slot][token] / largest}%`;
    line.style.width = `${100 * raw[slot][token] / largest}%`;
    box.append(fill, line);
    return [box, make("span", {className: "value", textContent: percent(drawn[slot][token])})];
  };
  const focused = [...find("bars").children].indexOf(document.activeElement);
  const head = make("div", {className: "row head"}, make("span"), ...[0, 1].map(slot => make("b", {textContent: labelOf(app.slots[slot])})));
  find("bars").replaceChildren(head, ...likeliest.map(token => {
    const char = app.data.tokens[token];
    const label = `Append ${char === " " ? "a space" : visible(char)}: model 1 ${percent(drawn[0][token])}, model 2 ${percent(drawn[1][token])}`;
    const button = make("button", {type: "button", className: "row", "aria-label": label, onclick: () => appendText(char)});
    button.append(make("span", {className: "char", dir: "auto", textContent: visible(char)}), ...bar(0)(token), ...bar(1)(token));
    return button;
  }));
  find("bars").children[focused]?.focus();
  const rest = raw.map(probs => Math.max(0, 1 - sum(likeliest.map(token => probs[token]))));
  const others = raw[0].length - 1 - likeliest.length;
  const which = others ? `${others} less likely characters and the unknown one, together` : "the unknown character,";
  find("rest").textContent = `Not shown: ${which} ${percent(rest[0])} and ${percent(rest[1])}.`;
}

function appendText(text) {
  const box = find("text");
  box.value = app.text + text;
  setText(box.value);
}

// Writes characters, one after another; with reduced motion they appear at once. A seed gives the same text again if the
// text before, the model and the sliders are the same.
async function writeWith(slot, length) {
  if (!app.ids.length) return;
  const writing = app.writing += 1, reading = readingOf(app.slots[slot]), settings = sampling();
  app.written ??= {before: find("text").value, random: randomNumbers(Number(find("seed").value))};
  find("stop").hidden = find("undo").hidden = false;
  for (let i = 0; i < length && app.writing === writing; i++) {
    const ids = app.ids.slice();
    if (!await reading.read(ids, () => app.writing === writing) || app.text.length >= MAX_TEXT) break;
    const char = app.data.tokens[draw(drawnWith(reading.probs(), settings), app.written.random())];
    const box = find("text");
    box.value = app.text += char;
    app.ids.push(app.idOf.get(char));
    showTail();
    if (!isStill() && i % 4 === 0) await pause();
  }
  if (app.writing === writing) stopWriting();
  setText(find("text").value);
}

function stopWriting() {
  app.writing += 1;
  find("stop").hidden = true;
}

function forgetWriting() {
  stopWriting();
  app.written = null;
  find("undo").hidden = true;
}

function replaceText(text) {
  forgetWriting();
  find("text").value = text;
  setText(text);
}

function undoWriting() {
  if (app.written) replaceText(app.written.before);
}

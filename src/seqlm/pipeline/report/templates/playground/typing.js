// The text, colored by three models, with what each expects next.
"use strict";

const MAX_TEXT = 2000, NUM_BARS = 5, SPEAK_AFTER_MS = 1200, REDRAW_MS = 500, BITS_PER_SHADE = 1.2, DARKEST = 9;
const UNFINISHED = ".card:is(.old, .reading)";
const names = [...data.ngrams.models, ...data.networks].map(model => model.name);
const app = {cards: [], text: "", groups: [], ids: [], before: [], follow: []};

const shadeOf = bits => `s${Math.min(Math.floor(bits / BITS_PER_SHADE), DARKEST)}`;
const chosen = () => app.cards.map(card => card.select.value);
const distinct = () => [...new Set(chosen())];

// One card for each model; its elements stay, so that the focus survives when their content changes.
function makeCard(name, place) {
  const card = {
    select: make("select", {autocomplete: "off", "aria-label": `Model ${place + 1}`}, ...options(names)),
    score: make("b"), progress: make("progress", {max: 1, hidden: true, "aria-label": `Model ${place + 1} reads`}),
    text: make("p", {className: "passage", dir: "auto", tabIndex: 0}), bars: [],
  };
  card.select.value = name;
  card.select.addEventListener("change", () => read());
  for (let i = 0; i < NUM_BARS; i++) {
    const bar = make("button", {type: "button", className: "bar", hidden: true}, make("span"), make("span"));
    bar.addEventListener("click", () => change(find("text").value.replace(/\n+$/, ends => data.joined ? data.joined.repeat(ends.length) : " ") + data.tokens[bar.token]));
    card.bars.push(bar);
  }
  for (const kind of ["pointerover", "click"]) card.text.addEventListener(kind, ({target}) => target.matches("i") && point(target.dataset.place));
  card.element = make("div", {className: "card"}, make("p", {className: "score"}, card.select, card.score, card.progress),
    card.text, make("div", {className: "bars", role: "group", "aria-label": `Likeliest next characters, model ${place + 1}`}, ...card.bars));
  return card;
}

// Says what each model needed for one character.
function point(place) {
  if (document.querySelector(UNFINISHED)) return;
  const found = app.cards.map(card => card.text.querySelector(`[data-place="${place}"]`));
  for (const here of document.querySelectorAll(".cards .here")) here.classList.remove("here");
  for (const each of found) each.classList.add("here");
  find("bits").value = `“${visible(found[0].textContent)}”: ${found.map((each, i) => `${labelOf(chosen()[i])} ${each.title}`).join(" · ")}`;
}

// Replaces the text; `undo` goes back.
function change(text) {
  app.before.push(find("text").value);
  replaceText(text);
}

const undo = () => replaceText(app.before.pop());

function replaceText(text) {
  app.isTyping = false;
  find("text").value = text;
  setText();
}

// What is typed without a pause for a button is undone at once.
function typed() {
  if (!app.isTyping) app.before.push(app.shown);
  app.isTyping = true;
  setText();
}

// `missing` names models of the address that the page lacks.
function setText(missing = []) {
  app.shown = find("text").value;
  const typed = Array.from(find("text").value), unread = typed.length - MAX_TEXT;
  app.text = cleaned(typed.slice(0, MAX_TEXT).join(""));
  app.groups = graphemes(app.text);
  app.ids = Array.from(app.text, char => idOf.get(char) ?? 0);
  const unknown = app.ids.filter(id => id === 0).length;
  find("undo").disabled = !app.before.length;
  find("remark").textContent = [
    missing.length ? `Not on this page: ${missing.join(", ")}.` : "",
    unread > 0 ? `Only the first ${MAX_TEXT.toLocaleString("en")} characters are read; the last ${unread.toLocaleString("en")} are not.` : "",
    unknown ? `Characters that the models do not know: ${unknown}. They are read as unknown and not counted.` : "",
  ].join(" ");
  read();
}

// Has every chosen model read the text. What is shown of an earlier text is grey until then; what is read appears piece by
// piece.
function read() {
  for (const card of app.cards) {
    card.element.className = "card old";
    card.drawnAt = performance.now();
  }
  find("next").textContent = "";
  find("bits").value = find("bits").defaultValue;
  clearTimeout(app.timer);
  ask("read", {ids: app.ids, names: distinct()}, found => {
    for (const card of app.cards) if (card.select.value === found.name) showCard(card, found);
  });
  for (const follow of app.follow) follow();
}

function showCard(card, {share, bits, mean, probs}) {
  const isReading = share !== undefined;
  card.progress.hidden = !isReading;
  if (isReading) card.progress.value = share;
  if (isReading && performance.now() - card.drawnAt < REDRAW_MS) return;
  card.drawnAt = performance.now();
  card.element.className = isReading ? "card reading" : "card";
  card.text.replaceChildren(...passage(app.groups, (start, length) => {
    if (start + length > bits.length) return {className: "unread"};
    if (app.ids.slice(start, start + length).includes(0)) return {className: "unknown", title: "unknown"};
    const all = bits.slice(start, start + length).reduce((a, b) => a + b);
    return {className: shadeOf(all), title: `${fixed(all, 1)} bits`};
  }));
  if (isReading) return;
  card.score.textContent = mean === null ? "" : `${fixed(mean)} bits`;
  const likeliest = Array.from(probs, (_, i) => i).slice(1).sort((a, b) => probs[b] - probs[a] || a - b);
  card.bars.forEach((bar, i) => {
    bar.hidden = i >= likeliest.length;
    if (bar.hidden) return;
    bar.token = likeliest[i];
    bar.style.setProperty("--share", `${100 * probs[bar.token]}%`);
    [bar.children[0].textContent, bar.children[1].textContent] = [visible(data.tokens[bar.token]), percent(probs[bar.token])];
  });
  clearTimeout(app.timer);
  app.timer = setTimeout(speak, SPEAK_AFTER_MS);
}

// When typing has paused, says once what is shown, and puts it into the address.
function speak() {
  if (document.querySelector(UNFINISHED)) return;
  find("next").textContent = app.cards.map(card =>
    `${labelOf(card.select.value)}: ${card.score.textContent || "no text"}, next ${card.bars[0].textContent}`).join("; ");
  const state = new URLSearchParams([["text", Array.from(find("text").value).slice(0, MAX_TEXT).join("")], ...chosen().map(name => ["model", name])]);
  history.replaceState(null, "", `#${state}`);
}

// Section 5: Shannon's game of guessing the next character of the test text.
"use strict";

const CONTEXT = 60, MAX_KEYS = 60;

function prepareGame() {
  const common = order(app.frequency()).filter(token => token > 0);
  app.game = {common, ranks: [], bits: {}, modelRanks: {}};
  const keys = app.data.tokens.slice(1);
  if (keys.length <= MAX_KEYS) {
    find("keys").replaceChildren(...[...keys].sort().map(char => make("button", {
      type: "button", textContent: visible(char), "aria-label": char === " " ? "space" : char, onclick: () => guess(char),
    })));
  }
  find("guess").addEventListener("input", () => {
    const typed = Array.from(cleaned(`x${find("guess").value}`, app.data)).slice(1);
    find("guess").value = "";
    if (typed.length) guess(typed.at(-1));
  });
  find("reveal").addEventListener("click", reveal);
  find("restart").addEventListener("click", startGame);
  startGame();
}

// A passage begins at a word, if the text has words.
function startGame() {
  const text = app.passage("test"), {game} = app;
  const place = Math.floor(Math.random() * Math.max(1, text.length - 4 * CONTEXT)), space = text.indexOf(app.idOf.get(" "), place);
  const start = place && space >= 0 && space < text.length - 3 * CONTEXT ? space + 1 : place;
  Object.assign(game, {text, start, place: Math.min(start + CONTEXT, text.length - 1), ranks: [], bits: {}, modelRanks: {}, readings: {}});
  next();
}

// Prepares the next character; characters that the models do not know are shown.
function next() {
  const {game} = app;
  while (game.place < game.text.length && game.text[game.place] === 0) game.place += 1;
  game.tried = new Set();
  showGame("");
}

const isOver = () => app.game.place >= app.game.text.length;

function guess(char) {
  const {game} = app, token = app.idOf.get(char);
  if (isOver()) return;
  if (token === undefined || token === 0) return showGame(`“${visible(char)}” is not in the alphabet of the models.`);
  if (game.tried.has(token)) return showGame(`You have tried “${visible(char)}” already.`);
  game.tried.add(token);
  if (token === game.text[game.place]) settle(game.tried.size);
  else showGame(`Not “${visible(char)}”. Guess again.`);
}

// Goes on guessing for the player, the most common characters of the training text first.
function reveal() {
  const {game} = app;
  if (isOver()) return;
  for (const token of game.common) {
    if (game.tried.has(token)) continue;
    game.tried.add(token);
    if (token === game.text[game.place]) return settle(game.tried.size);
  }
}

function settle(rank) {
  const {game} = app, token = game.text[game.place];
  game.ranks.push(rank);
  for (const name of new Set([...app.slots.filter(Boolean), ...Object.keys(game.bits)])) scoreModel(name);
  game.place += 1;
  const said = `“${visible(app.data.tokens[token])}” after ${rank} ${rank === 1 ? "guess" : "guesses"}.`;
  next();
  showGame(said);
}

// What a model needs on the characters that were guessed so far, all of them, after the same text.
function scoreModel(name) {
  const {game} = app, reading = game.readings[name] ??= new Reading(app.byName.get(name));
  const bits = game.bits[name] ??= [], ranks = game.modelRanks[name] ??= [], ids = game.text.slice(game.start, game.place + 1);
  while (reading.ids.length < ids.length) {
    const probs = reading.probs(), token = ids[reading.ids.length], place = game.start + reading.ids.length;
    if (place >= game.start + CONTEXT && token !== 0) {
      bits.push(-Math.log2(probs[token]));
      ranks.push(rankOf(probs, token));
    }
    reading.append(token);
  }
}

function showGame(said) {
  const {game} = app, {tokens} = app.data, numSymbols = tokens.length - 1;
  const context = Array.from(game.text.slice(game.start, game.place), id => id ? tokens[id] : "□");
  find("context").replaceChildren(context.join(""), make("b", {className: "gap", textContent: isOver() ? "" : "?"}));
  find("said").textContent = isOver() ? "The test text ends here." : said;
  for (const key of find("keys").children) key.disabled = game.tried.has(app.idOf.get(key.textContent === "␣" ? " " : key.textContent));
  const size = game.ranks.length, first = ranks => size ? percent(ranks.filter(rank => rank === 1).length / size) : "–";
  const row = (name, ranks, bits) => {
    const {lower, upper} = shannonBounds(ranks, numSymbols), bounds = lower > upper ? "too few yet" : `${fixed(lower)} to ${fixed(upper)}`;
    return make("tr", {}, make("th", {scope: "row", textContent: name}), ...[
      first(ranks), size ? fixed(sum(ranks) / size, 1) : "–", size ? bounds : "–", bits,
    ].map(text => make("td", {textContent: text})));
  };
  find("scores").replaceChildren(
    row("you", game.ranks, "–"),
    ...Object.entries(game.bits).map(([name, bits]) => row(labelOf(name), game.modelRanks[name], fixed(sum(bits) / size))));
  find("guessed").textContent = size;
}

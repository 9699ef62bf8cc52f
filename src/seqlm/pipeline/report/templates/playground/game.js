// Shannon's game of guessing the next character of the test text.
"use strict";

const CONTEXT = 60;

function prepareGame() {
  // The most common characters first: in the test text, as a player sees it.
  const text = Array.from(data.test, char => idOf.get(char));
  const counts = data.tokens.map((_, token) => text.filter(one => one === token).length);
  app.game = {text, common: data.tokens.map((_, token) => token).slice(1).sort((a, b) => counts[b] - counts[a] || a - b)};
  find("guess").addEventListener("input", () => {
    const typed = Array.from(find("guess").value).at(-1);
    find("guess").value = "";
    if (typed !== undefined) guess(data.normalise === "letters" ? typed.toLowerCase() : typed);
  });
  find("reveal").addEventListener("click", reveal);
  find("restart").addEventListener("click", startGame);
  app.follow.push(askScores);
  find("game").addEventListener("toggle", () => { if (!app.game.ranks) startGame(); });
}

// A passage begins at a word, if the text has words.
function startGame() {
  const {game} = app, {text} = game;
  const place = Math.floor(Math.random() * Math.max(1, text.length - 4 * CONTEXT)), space = text.indexOf(idOf.get(" "), place);
  const start = space >= 0 && space < text.length - 3 * CONTEXT ? space + 1 : place;
  const first = Math.min(start + CONTEXT, text.length - 1);
  Object.assign(game, {start, first, place: first, ranks: [], models: new Map(), tried: new Set()});
  find("scores").classList.remove("old");
  showGame("");
}

function guess(char) {
  const {game} = app, token = idOf.get(char);
  if (game.place >= game.text.length) return;
  if (!token) return showGame(`“${char}” is not in the alphabet of the models, so it is not a guess.`);
  if (game.tried.has(token)) return showGame(`You have tried “${visible(char)}” already.`);
  game.tried.add(token);
  if (token !== game.text[game.place]) return showGame(`Not “${visible(char)}”. Guess again.`);
  settle();
}

// Goes on guessing for the player, the most common characters first.
function reveal() {
  const {game} = app;
  for (const token of game.common.slice(0, game.common.indexOf(game.text[game.place]) + 1)) game.tried.add(token);
  settle();
}

function settle() {
  const {game} = app, rank = game.tried.size, char = visible(data.tokens[game.text[game.place]]);
  if (game.place >= game.text.length) return;
  game.ranks.push(rank);
  game.place += 1;
  game.tried = new Set();
  showGame(`“${char}” after ${rank} ${rank === 1 ? "guess" : "guesses"}.`);
  askScores();
}

// Has the chosen models guess the same characters. Until then, the rows are grey.
function askScores() {
  const {game} = app, own = game.ranks, names = distinct(), models = new Map();
  if (!own?.length) return;
  find("scores").classList.add("old");
  const ids = game.text.slice(game.start, game.place);
  ask("score", {ids, names, from: game.first - game.start}, ({name, ranks, bits}) => {
    models.set(name, {ranks, bits});
    if (models.size < names.length || own !== game.ranks) return;  // another passage may have begun
    game.models = models;
    find("scores").classList.remove("old");
    showScores();
  });
}

function showGame(said) {
  const {game} = app, isOver = game.place >= game.text.length;
  const context = game.text.slice(game.start, game.place).map(id => data.tokens[id]).join("");
  find("context").replaceChildren(context, make("b", {className: "gap", textContent: isOver ? "" : "?"}));
  find("said").textContent = isOver ? "The test text ends here." : said;
  showScores();
}

function showScores() {
  const {game} = app, row = (name, ranks, bits) => {
    const size = ranks.length, {lower, upper} = shannonBounds(ranks, data.tokens.length - 1), average = list => list.reduce((a, b) => a + b) / size;
    const cells = size ? [
      percent(ranks.filter(rank => rank === 1).length / size), fixed(average(ranks), 1),
      lower > upper ? "too few yet" : `${fixed(lower)} to ${fixed(upper)}`, bits ? fixed(average(bits)) : "–",
    ] : ["–", "–", "–", "–"];
    return make("tr", {}, make("th", {scope: "row", textContent: name}), ...cells.map(textContent => make("td", {textContent})));
  };
  find("scores").replaceChildren(row("you", game.ranks), ...Array.from(game.models, ([name, {ranks, bits}]) => row(labelOf(name), ranks, bits)));
  const count = game.ranks.length;
  find("guessed").textContent = `${count} character${count === 1 ? "" : "s"}`;
}

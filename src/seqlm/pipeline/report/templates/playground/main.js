// Starts the page, as its address says: #text=...&model=...
"use strict";

const EXAMPLE = 56;  // as many characters as the page of results shows

function example() {
  const opening = Array.from(data.test).slice(0, 80).join("");
  return opening.slice(0, opening.lastIndexOf(" ", EXAMPLE - 1) + 1 || EXAMPLE);
}

function fromAddress() {
  const state = new URLSearchParams(location.hash.slice(1)), wanted = state.getAll("model");
  app.cards.forEach((card, place) => { card.select.value = names.includes(wanted[place]) ? wanted[place] : data.chosen[place]; });
  find("text").value = state.get("text") ?? example();
  app.before = [];
  setText(wanted.filter(name => !names.includes(name)));
}

app.cards = data.chosen.map(makeCard);
find("cards").append(...app.cards.map(card => card.element));
prepareWriting();
prepareInside();
prepareHistory();
prepareGame();
find("text").addEventListener("input", typed);
find("undo").addEventListener("click", undo);
find("example").addEventListener("click", () => change(example()));
find("restart-all").addEventListener("click", () => { history.replaceState(null, "", location.pathname); location.reload(); });
addEventListener("hashchange", fromAddress);
document.querySelector(".skip").addEventListener("click", event => { event.preventDefault(); find("main").focus(); });  // the address stays
for (const element of document.querySelectorAll(".needs-script")) element.hidden = false;
fromAddress();

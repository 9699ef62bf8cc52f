// What the models write after the text.
"use strict";

function prepareWriting() {
  const show = () => { find("temperature-shown").textContent = Number(find("temperature").value) ? fixed(Number(find("temperature").value), 1) : "0: always the likeliest"; };
  find("temperature").addEventListener("input", show);
  show();
  find("write").addEventListener("click", write);
  app.follow.push(() => find("written").classList.add("old"));
}

function write() {
  const wanted = distinct(), start = app.text.slice(-40);
  const views = new Map(wanted.map(name => [name, make("p", {className: "passage", dir: "auto", textContent: "…"})]));
  find("written").replaceChildren(...wanted.flatMap(name => [make("h3", {textContent: labelOf(name)}), views.get(name)]));
  find("written").classList.remove("old");
  const request = {ids: app.ids, names: wanted, length: 200, temperature: Number(find("temperature").value), seed: Number(find("seed").value)};
  ask("write", request, ({name, tokens}) =>
    views.get(name).replaceChildren(start, make("b", {textContent: tokens.map(token => data.tokens[token]).join("")})));
}

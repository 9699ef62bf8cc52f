// The hidden units of a network over the text.
"use strict";

const SHOWN_CHARS = 160, DARKEST_UNIT = 4;
const PROPERTY_NAMES = ["the position in the word", "vowels and consonants", "the last character", "the character before the last"];

function prepareInside() {
  const networks = data.networks.map(network => network.name);
  find("inside").hidden = !networks.length;
  if (!networks.length) return;
  find("network").append(...options(networks));
  find("network").value = data.chosen.find(name => networks.includes(name));
  find("property").append(make("option", {value: "", textContent: "change most over your text"}));
  find("property").append(...PROPERTY_NAMES.map(value => make("option", {value, textContent: `track ${value}`})));
  for (const id of ["network", "property"]) find(id).addEventListener("change", () => { app.unit = null; askUnits(); });
  find("inside").addEventListener("toggle", askUnits);
  app.follow.push(askUnits);
}

function askUnits() {
  if (!find("inside").open) return;
  find("units").classList.add("old");
  if (!app.ids.length) return void (find("units-said").textContent = "Type a text first.");
  find("units-said").textContent = "Measuring…";
  const groups = app.groups, property = find("property").value;
  const listen = found => { if (groups === app.groups) showUnits(groups, property, found); };  // not of an earlier text
  ask("units", {ids: app.ids, name: find("network").value, property}, listen);
}

function showUnits(groups, property, {listed, chance}) {
  const tracking = listed.filter(one => one.measured !== undefined);
  find("units").classList.remove("old");
  find("units-said").textContent = !property ? "" : tracking.length
    ? `Up to ${percent(Math.max(...tracking.map(one => one.measured)))} of what a unit does is explained by ${property}; by chance, up to ${percent(chance)}.`
    : `No unit tracks ${property} more closely than chance would (${percent(chance ?? 0)}), so the map shows those that change most over your text.`;
  const one = listed.find(({unit}) => unit === app.unit) ?? listed[0];
  const largest = Math.max(1e-9, ...listed.flatMap(({values}) => values.slice(-SHOWN_CHARS).map(Math.abs)));
  const shaded = value => {
    const shade = Math.min(DARKEST_UNIT, Math.round(DARKEST_UNIT * Math.abs(value) / largest));
    return {className: `${value < 0 ? "a" : "b"}${shade}`, title: fixed(value)};
  };
  find("coloured").replaceChildren(...passage(groups, (start, length) => shaded(one.values[start + length - 1])));
  let end = 0;
  const ends = groups.map(group => (end += group.length) - 1).slice(-SHOWN_CHARS), shown = groups.slice(-SHOWN_CHARS);
  const choose = unit => {
    if (find("units").classList.contains("old")) return;  // the map belongs to an earlier text
    app.unit = unit;
    showUnits(groups, property, {listed, chance});
    find("map").querySelector(".chosen button").focus();
  };
  const heads = ["unit", ...tracking.length ? ["explained"] : [], ...shown.map(group => group.map(char => char === " " ? "␣" : char).join(""))];
  find("map").replaceChildren(
    make("thead", {}, make("tr", {}, ...heads.map(textContent => make("th", {scope: "col", textContent, className: textContent === "explained" ? "share" : ""})))),
    make("tbody", {}, ...listed.map(({unit, measured, values}) => make("tr", {className: unit === one.unit ? "chosen" : ""},
      make("th", {scope: "row"}, make("button", {type: "button", textContent: unit, tabIndex: unit === one.unit ? 0 : -1, onclick: () => choose(unit)})),
      ...tracking.length ? [make("td", {className: "share", textContent: percent(measured)})] : [],
      ...ends.map(place => make("td", shaded(values[place])))))));
}

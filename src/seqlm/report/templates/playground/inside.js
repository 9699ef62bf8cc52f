// Section 3: the hidden units of a network over the text.
"use strict";

const SHOWN_CHARS = 160, SHOWN_UNITS = 12, MEASURED_CHARS = 1600, DARKEST_UNIT = 4;

function prepareInside() {
  const networks = app.models.filter(model => model.described).map(model => model.name);
  find("inside").hidden = !networks.length;
  if (!networks.length) return;
  find("network").append(...options(networks));
  find("network").value = defaultSlots().find(name => networks.includes(name)) ?? networks[0];
  find("property").append(make("option", {value: "", textContent: "change most over your text"}));
  find("property").append(...Object.keys(PROPERTIES).map(value => make("option", {value, textContent: `track ${value}`})));
  find("network").addEventListener("change", () => { chooseNetwork(); refresh(); });
  for (const id of ["layer", "property"]) find(id).addEventListener("change", () => chooseUnit(null));
  find("unit").addEventListener("input", () => chooseUnit(Number(find("unit").value)));
  chooseNetwork();
}

const network = () => app.byName.get(find("network").value);
const layer = () => Number(find("layer").value);

function chooseNetwork() {
  const {numLayers} = network();
  find("layer").replaceChildren(...Array.from({length: numLayers}, (_, value) => make("option", {value, textContent: value + 1})));
  find("layer").value = numLayers - 1;
  find("layer-label").hidden = numLayers === 1;
  find("unit").max = network().units(network().read(network().start(), 1), layer()).length - 1;
  app.unit = null;
}

// Without a number, the first unit of the map is chosen.
function chooseUnit(unit) {
  app.unit = unit;
  refresh();
}

// Shows some units over the last characters of the text, and the text coloured by the chosen unit.
async function showInside(isCurrent) {
  if (find("inside").hidden || !app.ids.length) return;
  const reading = readingOf(network().name);
  if (!await reading.read(app.ids, isCurrent)) return;
  const property = find("property").value, tracking = property ? await unitsThatTrack(property, isCurrent) : [];
  if (!tracking) return;
  if (!property) find("units-said").textContent = "";
  let end = 0;
  const activity = reading.states.slice(1).map(state => network().units(state, layer()));
  const columns = app.groups.map(group => [group, activity[(end += group.length) - 1]]).slice(-SHOWN_CHARS);
  const listed = tracking.length ? tracking : unitsThatChange(columns.map(([, values]) => values));
  const chosen = app.unit ??= listed[0].unit, rows = listed.some(({unit}) => unit === chosen) ? listed : [{unit: chosen}, ...listed];
  find("unit").value = find("unit-shown").textContent = chosen;
  const largest = Math.max(1e-9, ...rows.flatMap(({unit}) => columns.map(([, values]) => Math.abs(values[unit])).filter(Number.isFinite)));
  const shaded = value => {
    const shade = Math.min(DARKEST_UNIT, Math.round(DARKEST_UNIT * Math.abs(value) / largest));
    return {className: `${value < 0 ? "a" : "b"}${shade}`, title: fixed(value)};
  };
  find("coloured").replaceChildren(...passage(app.groups, (start, length) => shaded(activity[start + length - 1][chosen])));
  const scale = [-1, -0.5, 0, 0.5, 1].map(share => largest * share);
  find("unit-scale").replaceChildren(...scale.map(value => make("span", {...shaded(value), textContent: fixed(value)})));
  const share = textContent => tracking.length ? [make("td", {className: "share", textContent})] : [];
  const heads = columns.map(([group]) => make("th", {scope: "col", textContent: group.map(visible).join("")}));
  const map = find("map"), hasFocus = map.contains(document.activeElement);
  map.replaceChildren(make("tr", {}, make("th", {scope: "col", textContent: "unit"}), ...share("explained"), ...heads),
    ...rows.map(({unit, measured}) => make("tr", {className: unit === chosen ? "chosen" : ""},
      make("th", {scope: "row"}, make("button", {type: "button", textContent: unit, onclick: () => chooseUnit(unit)})),
      ...share(measured === undefined ? "" : percent(measured)),
      ...columns.map(([, values]) => make("td", shaded(values[unit]))))));
  if (hasFocus) map.querySelector(".chosen button").focus();
}

// The units with the largest variance, the largest first.
function unitsThatChange(activity) {
  const variances = Array.from(activity[0], (_, unit) => variance(activity.map(values => values[unit])));
  return order(variances).slice(0, SHOWN_UNITS).map(unit => ({unit}));
}

// Measures on held-out text which units track a property; returns those that do so more closely than chance would.
async function unitsThatTrack(name, isCurrent) {
  const {values, classes} = PROPERTIES[name], model = network(), shownLayer = layer(), key = `${model.name}, ${shownLayer}, ${name}`;
  if (!app.ranked[key]) {
    find("units-said").textContent = "Measuring…";
    const ids = app.passage("val").slice(0, MEASURED_CHARS), reading = app.measured[model.name] ??= new Reading(model);
    if (!await reading.read(ids, isCurrent)) return null;
    const activity = reading.states.slice(1).map(state => model.units(state, shownLayer));
    app.ranked[key] = rankUnits(activity, values(Array.from(ids, id => app.data.tokens[id])), classes);
  }
  const {units, chance} = app.ranked[key], found = units.filter(({measured}) => measured > chance);
  find("units-said").textContent = found.length
    ? `Up to ${percent(Math.max(...found.map(one => one.measured)))} of what a unit does is explained by ${name}; by chance, up to ${percent(chance)}.`
    : `No unit tracks ${name} more closely than chance would (${percent(chance)}), so the map shows those that change most over your text.`;
  return found;
}

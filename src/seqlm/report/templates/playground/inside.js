// Section 3: the hidden units of a network over the text.
"use strict";

const SHOWN_CHARS = 160, MEASURED_CHARS = 1600, HEAT_ROWS = 640;
const COLD = [32, 96, 190], WARM = [214, 96, 24];

function prepareInside() {
  const networks = app.models.filter(model => model.described);
  find("inside").hidden = !networks.length;
  if (!networks.length) return;
  const select = find("network");
  select.append(...networks.map(model => make("option", {value: model.name, textContent: labelOf(model)})));
  select.value = app.slots.find(name => networks.some(network => network.name === name)) ?? networks[0].name;
  select.addEventListener("change", () => { chooseNetwork(); refresh(); });
  find("layer").addEventListener("input", () => { forgetUnits(); refresh(); });
  find("unit").addEventListener("input", refresh);
  find("property").append(...Object.keys(PROPERTIES).map(name => make("option", {value: name, textContent: name})));
  find("property").addEventListener("change", forgetUnits);
  find("measure").addEventListener("click", measureUnits);
  find("heat").addEventListener("click", event => {
    const box = event.target.getBoundingClientRect();
    find("unit").value = Math.floor((event.clientY - box.top) / box.height * (Number(find("unit").max) + 1));
    refresh();
  });
  chooseNetwork();
}

const network = () => app.byName.get(find("network").value);
const layer = () => Number(find("layer").value) - 1;

function chooseNetwork() {
  find("layer").max = find("layer").value = network().numLayers;
  find("layers").textContent = `of ${network().numLayers}`;
  find("layer-label").hidden = network().numLayers === 1;
  const state = network().read(network().start(), 1);
  find("unit").max = network().units(state, layer()).length - 1;
  find("unit").value = 0;
  forgetUnits();
}

function forgetUnits() {
  find("units-table").hidden = true;
  find("units-said").textContent = "";
}

// Shows the units over the last characters of the text, and the text coloured by the chosen unit.
async function showInside(isCurrent) {
  if (find("inside").hidden || !app.ids.length) return;
  const reading = readingOf(network().name);
  if (!await reading.read(app.ids, isCurrent)) return;
  const first = Math.max(0, app.ids.length - SHOWN_CHARS);
  const columns = reading.states.slice(first + 1).map(state => network().units(state, layer()));
  const unit = Number(find("unit").value);
  find("unit-shown").textContent = unit;
  drawHeat(columns, unit);
  const values = reading.states.slice(1).map(state => network().units(state, layer())[unit]);
  const largest = Math.max(1e-9, ...values.map(Math.abs));
  find("coloured").replaceChildren(...passage(app.groups, (start, length) => {
    const value = values[start + length - 1], [red, green, blue] = value < 0 ? WARM : COLD;
    return {title: fixed(value), background: `rgb(${red} ${green} ${blue} / ${Math.abs(value) / largest * 0.6})`};
  }));
  find("heat").setAttribute("aria-label", `Heat map of ${columns[0].length} units over the last ${columns.length} characters; ` +
    `unit ${unit} goes from ${fixed(Math.min(...values))} to ${fixed(Math.max(...values))}`);
}

function drawHeat(columns, unit) {
  // A unit has several rows of pixels, so that the lines around the chosen one hide no other.
  const numUnits = columns[0].length, thickness = Math.ceil(HEAT_ROWS / numUnits);
  const canvas = find("heat"), width = columns.length, height = numUnits * thickness;
  Object.assign(canvas, {width, height});
  const context = canvas.getContext("2d"), image = context.createImageData(width, height);
  const largest = columns.reduce((most, column) => column.reduce((a, b) => Math.max(a, Math.abs(b)), most), 1e-9);
  columns.forEach((column, x) => {
    for (let y = 0; y < height; y++) {
      const value = column[Math.floor(y / thickness)], share = Math.abs(value) / largest;
      image.data.set([...(value < 0 ? WARM : COLD), 255 * share], 4 * (y * width + x));  // at 0 the paper is seen
    }
  });
  context.putImageData(image, 0, 0);
  context.fillStyle = getComputedStyle(canvas).color;
  for (const y of [unit * thickness - 1, (unit + 1) * thickness]) context.fillRect(0, y, width, 1);
}

// Measures on text that no model has learned from: units are chosen on its first half and measured on its second.
async function measureUnits() {
  const measuring = app.measuring += 1, isCurrent = () => app.measuring === measuring;
  const name = find("property").value, {values, classes} = PROPERTIES[name], model = network(), shownLayer = layer();
  find("units-said").textContent = "Measuring…";
  const ids = app.passage("val").slice(0, MEASURED_CHARS), key = `${model.name} on val`;
  const reading = app.measured[key] ??= new Reading(model);
  if (!await reading.read(ids, isCurrent)) return;
  const activity = reading.states.slice(1).map(state => model.units(state, shownLayer));
  const found = rankUnits(activity, values(Array.from(ids, id => app.data.tokens[id])), classes);
  const better = found.units.filter(({measured}) => measured > found.chance);
  find("units-table").hidden = false;
  find("units").replaceChildren(...found.units.slice(0, 8).map(({unit, measured}) => make("tr", {},
    make("td", {}, make("button", {type: "button", textContent: `unit ${unit}`, onclick: () => { find("unit").value = unit; refresh(); }})),
    make("td", {textContent: percent(measured)}), make("td", {textContent: measured > found.chance ? "yes" : "no"}))));
  find("units-said").textContent = better.length
    ? `“${name}” explains up to ${percent(Math.max(...better.map(one => one.measured)))} of what a unit does. By chance, the best of all units reaches ${percent(found.chance)}.`
    : `No unit tracks “${name}” more closely than chance would: the best of all units reaches ${percent(found.chance)} by chance.`;
}

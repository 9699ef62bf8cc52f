// Training from the first epoch to the last.
"use strict";

function prepareHistory() {
  const runs = Object.keys(data.history);
  find("over-time").hidden = !runs.length;
  if (!runs.length) return;
  const select = find("run");
  select.append(...options(runs));
  const memorised = run => { const {rows} = data.history[run]; return Math.max(...rows.map(row => row[2] ?? 0)) / (rows.at(-1)[1] || 1); };
  select.value = runs.reduce((best, run) => memorised(run) > memorised(best) ? run : best);
  select.addEventListener("change", chooseRun);
  find("epoch").addEventListener("input", showEpoch);
  chooseRun();
}

function chooseRun() {
  const {rows} = data.history[find("run").value];
  find("epoch").max = rows.length - 1;
  find("epoch").value = rows.length - 1;
  showEpoch();
}

function svg(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

const shownEpoch = epoch => Number(epoch.toFixed(1));

function showEpoch() {
  const run = find("run").value, {rows, samples, prefix} = data.history[run], row = rows[find("epoch").value], [epoch, train] = row;
  const evaluated = rows.filter(([at, , val]) => at <= epoch && val !== null).at(-1);
  find("epoch-shown").textContent = shownEpoch(epoch);
  const val = evaluated ? `${fixed(evaluated[2])}${evaluated[0] === epoch ? "" : ` (at epoch ${shownEpoch(evaluated[0])})`}` : "not measured yet";
  find("perplexities").textContent = `Perplexity on train ${fixed(train)}, on val ${val}.`;
  const sample = samples.filter(one => one.epoch <= epoch).at(-1);
  find("sample").replaceChildren(...sample ? [make("b", {textContent: prefix}), sample.text] : ["No sample was kept this early."]);
  find("sample-said").textContent = !sample ? "" : `Written at epoch ${shownEpoch(sample.epoch)}, each time the likeliest character.`;
  drawChart(rows, row, find("chart"));
}

// Both lines on one scale of logarithms, which stretches to the width of the page.
function drawChart(rows, row, chart) {
  const values = rows.flatMap(([, train, val]) => [train, val]).filter(value => value !== null);
  const [first, last, low, high] = [rows[0][0], rows.at(-1)[0], Math.min(...values), Math.max(...values)];
  const scale = (value, from, to) => from === to ? 0.5 : Math.log(value / from) / Math.log(to / from);
  const x = epoch => (100 * scale(epoch, first, last)).toFixed(2), y = value => (100 - 100 * scale(value, low, high)).toFixed(2);
  const line = (column, extra) => svg("polyline", {points: rows.filter(one => one[column] !== null).map(one => `${x(one[0])},${y(one[column])}`).join(" "), ...extra});
  chart.replaceChildren(line(1), line(2, {class: "val", "stroke-dasharray": "6 3"}),
    svg("line", {x1: x(row[0]), x2: x(row[0]), y1: 0, y2: 100, "stroke-dasharray": "2 3"}));
  find("scales").textContent = `From epoch ${shownEpoch(first)} (left) to ${shownEpoch(last)} (right), perplexities from ${fixed(low)} (bottom) to ${fixed(high)} (top); both scales are logarithmic.`;
  chart.setAttribute("aria-label", `Perplexity from epoch ${shownEpoch(first)} to ${shownEpoch(last)}: on train from ${fixed(rows[0][1])} to ${fixed(rows.at(-1)[1])}`);
}

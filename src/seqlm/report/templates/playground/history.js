// Training from the first epoch to the last.
"use strict";

const CHART = {height: 240, left: 44, right: 12, top: 22, bottom: 34};

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
  new ResizeObserver(showEpoch).observe(find("chart"));  // so that its text keeps its size; a folded one has none
}

function chooseRun() {
  const {rows} = data.history[find("run").value];
  find("epoch").max = rows.length - 1;
  find("epoch").value = rows.length - 1;
  showEpoch();
}

const svg = (tag, attributes, text = "") => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
};

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
  if (find("chart").clientWidth) drawChart(rows, row, find("chart"));
}

function drawChart(rows, row, chart) {
  const {width} = chart.getBoundingClientRect(), {height, left, right, top, bottom} = CHART, values = rows.flatMap(([, train, val]) => [train, val]).filter(value => value !== null);
  const ticks = Array.from({length: 36}, (_, i) => [1, 2, 5][i % 3] * 10 ** (Math.floor(i / 3) - 3)), between = (from, to) => ticks.filter(tick => tick >= from && tick <= to);
  const [first, last] = [rows[0][0], rows.at(-1)[0]], lowest = Math.min(...values), highest = Math.max(...values);
  const low = ticks.findLast(tick => tick <= lowest) ?? lowest, high = ticks.find(tick => tick >= highest) ?? highest;
  const scale = (value, from, to, begin, end) => begin + (end - begin) * (from === to ? 0.5 : Math.log(value / from) / Math.log(to / from));
  const x = epoch => scale(epoch, first, last, left, width - right), y = value => scale(value, low, high, height - bottom, top);
  const line = (column, extra) => {
    const points = rows.filter(one => one[column] !== null).map(one => `${x(one[0]).toFixed(1)},${y(one[column]).toFixed(1)}`);
    return svg("polyline", {points: points.join(" "), fill: "none", "stroke-width": 2, ...extra});
  };
  chart.replaceChildren(
    ...between(low, high).flatMap(value => [
      svg("line", {x1: left, x2: width - right, y1: y(value), y2: y(value), class: "grid"}),
      svg("text", {x: left - 6, y: y(value) + 4, "text-anchor": "end"}, value)]),
    ...between(first, last).map(value => svg("text", {x: x(value), y: height - bottom + 16, "text-anchor": "middle"}, value)),
    svg("text", {x: width - right, y: height - 3, "text-anchor": "end"}, "epoch"),
    svg("text", {x: left, y: 12}, "perplexity"),
    line(1, {stroke: "currentColor"}), line(2, {stroke: "var(--val)", "stroke-dasharray": "6 3"}),
    svg("line", {x1: x(row[0]), x2: x(row[0]), y1: top, y2: height - bottom, stroke: "currentColor", "stroke-dasharray": "2 3"}));
  chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
  chart.setAttribute("aria-label", `Perplexity from epoch ${shownEpoch(first)} to ${shownEpoch(last)}: on train from ${fixed(rows[0][1])} to ${fixed(rows.at(-1)[1])}`);
}

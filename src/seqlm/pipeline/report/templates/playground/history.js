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
  const last = data.history[find("run").value].rows.length - 1;
  Object.assign(find("epoch"), {max: last, value: last});
  showEpoch();
}

const shownEpoch = epoch => Number(epoch.toFixed(1));

function showEpoch() {
  const {rows, samples, prefix} = data.history[find("run").value], row = rows[find("epoch").value], [epoch, train] = row;
  const evaluated = rows.filter(([at, , val]) => at <= epoch && val !== null).at(-1);
  find("epoch-shown").textContent = shownEpoch(epoch);
  const val = evaluated ? `${fixed(evaluated[2])}${evaluated[0] === epoch ? "" : ` (at epoch ${shownEpoch(evaluated[0])})`}` : "not measured yet";
  find("perplexities").textContent = `Perplexity on train ${fixed(train)}, on val ${val}.`;
  const sample = samples.filter(one => one.epoch <= epoch).at(-1);
  find("sample").replaceChildren(...sample ? [make("b", {textContent: prefix}), sample.text] : ["No sample was kept this early."]);
  find("sample-said").textContent = !sample ? "" : `Written at epoch ${shownEpoch(sample.epoch)}, each time the likeliest character.`;
  drawChart(rows, epoch);
}

// Both lines on one scale of logarithms, which stretches to the width of the page.
function drawChart(rows, epoch) {
  const values = rows.flatMap(([, train, val]) => [train, val]).filter(value => value !== null);
  const [first, last, low, high] = [rows[0][0], rows.at(-1)[0], Math.min(...values), Math.max(...values)];
  const place = (value, from, to) => (from === to ? 50 : 100 * Math.log(value / from) / Math.log(to / from)).toFixed(2);
  const [train, val, now] = find("chart").children;
  [train, val].forEach((line, column) => line.setAttribute("points", rows.filter(row => row[column + 1] !== null).map(
    row => `${place(row[0], first, last)},${place(row[column + 1], high, low)}`).join(" ")));
  for (const x of ["x1", "x2"]) now.setAttribute(x, place(epoch, first, last));
  find("scales").textContent = `From epoch ${shownEpoch(first)} (left) to ${shownEpoch(last)} (right), perplexities from ${fixed(low)} (bottom) to ${fixed(high)} (top); both scales are logarithmic.`;
}

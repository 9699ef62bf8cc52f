// The worker holds the models and does what the page asks for: one job at a time, a newer one of its kind in its place,
// and what was typed before all else. A job whose place is taken stops within a slice of time.

const LISTED_UNITS = 12;
const readings = new Map(), waiting = new Map();
let models, content, isBusy = false;

// Sends the worker's models what the page has: `data` as in the page, and the texts with counts, weights and passages.
function begin({data, blocks}) {
  content = {data, val: arraysOf(blocks.val, [data.val])[0], ranked: new Map()};
  const all = [...ngramModels(data.ngrams, blocks), ...networkModels(data.networks, blocks)];
  models = new Map(all.map(model => [model.name, model]));
}

// A reading of its own for each purpose, so that none forgets what another one needs.
function readingOf(name, purpose) {
  const key = `${purpose} ${name}`;
  if (!readings.has(key)) readings.set(key, new Reading(models.get(name), content.data.begin));
  return readings.get(key);
}

// Each job takes what the page asked, whether it is still wanted, and how to answer. It returns false if it stopped.
const JOBS = {
  // The bits of each character, and the probabilities of the next one, of each model in turn.
  async read({ids, names}, isCurrent, answer) {
    for (const name of names) {
      const reading = readingOf(name, "text");
      if (!await reading.read(ids, isCurrent, share => answer({name, share, bits: reading.bits.slice()}))) return false;
      answer({name, bits: reading.bits.slice(), mean: reading.meanBits(), probs: reading.probs()});
    }
    return true;
  },

  // What each model writes after a text.
  async write({ids, names, length, temperature, seed}, isCurrent, answer) {
    for (const name of names) {
      const reading = readingOf(name, "written"), random = randomNumbers(seed), written = ids.slice();
      for (let i = 0; i <= length; i++) {
        if (!await reading.read(written, isCurrent)) return false;
        if (i < length) written.push(draw(drawnWith(reading.probs(), temperature), random()));
        if (i % 20 === 0 || i === length) {
          answer({name, tokens: written.slice(ids.length)});
          await pause();
          if (!isCurrent()) return false;
        }
      }
    }
    return true;
  },

  // What models need for the characters of a game from a place on: bits, and guesses.
  async score({ids, names, from}, isCurrent, answer) {
    for (const name of names) {
      const reading = readingOf(name, "game"), ranks = [], places = ids.map((_, place) => place).slice(from);
      if (!await reading.read(ids, isCurrent)) return false;
      for (const place of places) ranks.push(rankOf(models.get(name).probs(reading.states[place]), ids[place]));
      answer({name, ranks, bits: reading.bits.slice(from)});
    }
    return true;
  },

  // The units of a network over a text: those that track a property, or that change most.
  async units({ids, name, property}, isCurrent, answer) {
    const reading = readingOf(name, "text");
    if (!await reading.read(ids, isCurrent)) return false;
    const activity = reading.states.slice(1).map(state => models.get(name).units(state));
    const changing = order(activity[0].map((_, unit) => variance(activity.map(values => values[unit]))));
    let listed = changing.slice(0, LISTED_UNITS).map(unit => ({unit})), chance = null;
    if (property) {
      const ranked = await trackingUnits(name, property, isCurrent);
      if (!ranked) return false;
      const tracking = ranked.units.filter(({measured}) => measured > (chance = ranked.chance));
      tracking.sort((a, b) => b.measured - a.measured);
      if (tracking.length) listed = tracking;
    }
    answer({chance, listed: listed.map(one => ({...one, values: activity.map(values => values[one.unit])}))});
    return true;
  },
};

// Measures on val how closely units track a property.
async function trackingUnits(name, property, isCurrent) {
  const key = `${name} ${property}`, {val, data, ranked} = content;
  if (!ranked.has(key)) {
    const reading = readingOf(name, "val");
    if (!await reading.read(val, isCurrent)) return null;
    const activity = reading.states.slice(1).map(state => models.get(name).units(state));
    ranked.set(key, rankUnits(activity, PROPERTIES[property](Array.from(val, id => data.tokens[id]))));
  }
  return ranked.get(key);
}

async function work({data: request}) {
  if (request.data) return begin(request);
  waiting.set(request.job, request);
  if (isBusy) return;
  isBusy = true;
  const kinds = Object.keys(JOBS);
  for (let job; (job = kinds.find(kind => waiting.has(kind)));) {
    const one = waiting.get(job), isCurrent = () => !kinds.slice(0, kinds.indexOf(job) + 1).some(kind => waiting.has(kind));
    waiting.delete(job);
    const isDone = await JOBS[job](one, isCurrent, found => postMessage({job, number: one.number, ...found}));
    if (!isDone && !waiting.has(job)) waiting.set(job, one);
  }
  isBusy = false;
}

if (typeof WorkerGlobalScope !== "undefined") onmessage = work;

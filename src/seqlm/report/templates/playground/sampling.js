// How a character is drawn with a temperature and a seed, and how many guesses a model needs for one.

// A small generator of random numbers in [0, 1): the same seed gives the same numbers (mulberry32, public domain).
function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = state + 0x6D2B79F5 >>> 0;
    let mixed = Math.imul(state ^ state >>> 15, state | 1);
    mixed ^= mixed + Math.imul(mixed ^ mixed >>> 7, mixed | 61);
    return ((mixed ^ mixed >>> 14) >>> 0) / 2 ** 32;
  };
}

// Returns the probabilities with which characters are drawn. The unknown character, token 0, is never drawn.
// Temperature 0 is the likeliest character.
function drawnWith(probs, temperature) {
  const likeliest = argmax(probs, 1);
  const found = Float64Array.from(probs, (p, i) => {
    if (i === 0) return 0;
    return temperature ? Math.exp((Math.log(p) - Math.log(probs[likeliest])) / temperature) : Number(i === likeliest);
  });
  const total = sum(found);
  return found.map(weight => weight / total);
}

function draw(probs, number) {
  let cumulative = 0, last = 1;
  for (let i = 1; i < probs.length; i++) {
    if (probs[i] === 0) continue;
    cumulative += probs[i];
    last = i;
    if (cumulative > number) return i;
  }
  return last;
}

// Returns how many guesses a model needs that guesses the likeliest character first; it never guesses the unknown one.
function rankOf(probs, token) {
  let rank = 1;
  for (let i = 1; i < probs.length; i++) if (probs[i] > probs[token] || (probs[i] === probs[token] && i < token)) rank += 1;
  return rank;
}

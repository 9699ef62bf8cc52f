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
  const known = probs.with(0, 0), largest = known.reduce((a, b) => Math.max(a, b)), likeliest = known.indexOf(largest);
  return normalised(known.map((p, i) => temperature ? (p / largest) ** (1 / temperature) : Number(i === likeliest)));
}

function draw(probs, number) {
  let cumulative = 0;
  const drawn = probs.findIndex(p => (cumulative += p) > number);
  return drawn < 0 ? probs.findLastIndex(p => p > 0) : drawn;  // if rounding leaves the sum below 1
}

// Returns how many guesses a model needs that guesses the likeliest character first; it never guesses the unknown one.
function rankOf(probs, token) {
  return 1 + probs.filter((p, i) => i && (p > probs[token] || (p === probs[token] && i < token))).length;
}

// Which hidden units track something that has a name.

const LETTER = /\p{L}/u, VOWEL = /[aeiou]/i;

// Properties of each character of a text, as classes. A unit is compared with the property of what was read last.
const PROPERTIES = {
  "the position in the word": chars => { let since = 0; return chars.map(char => since = LETTER.test(char) ? since + 1 : 0); },
  "vowels and consonants": chars => chars.map(char => VOWEL.test(char) ? 1 : LETTER.test(char) ? 2 : 0),
  "the last character": chars => chars,
  "the character before the last": chars => chars.map((_, i) => chars[i - 1] ?? ""),
};

// Returns the share of the variance of a unit that a property explains, from 0 to 1: the variance between the means of its
// classes. With many classes of few places, chance alone explains some.
function shareExplained(activity, classes) {
  const center = mean(activity), total = activity.length * variance(activity, center), groups = new Map();
  if (!(total > 0)) return 0;
  classes.forEach((value, i) => {
    const group = groups.get(value) ?? groups.set(value, {sum: 0, size: 0}).get(value);
    group.sum += activity[i];
    group.size += 1;
  });
  return sum(Array.from(groups.values(), group => group.size * (group.sum / group.size - center) ** 2)) / total;
}

// Returns units by how well they track a property: chosen on the first half of a text, measured on the second.
// activity[t] has the units after character t. `chance` is the largest share that any unit reaches on the second half when
// the property is shifted along the text, the largest of several shifts.
function rankUnits(activity, values, numMoves = 5) {
  const size = values.length, half = size >> 1, numUnits = activity[0].length;
  const columns = Array.from({length: numUnits}, (_, unit) => Float64Array.from(activity, row => row[unit]));
  const share = (unit, from, to, moved = 0) => shareExplained(
    columns[unit].subarray(from, to), Array.from({length: to - from}, (_, i) => values[from + (i + moved) % (to - from)]));
  const units = columns.map((_, unit) => ({unit, chosenOn: share(unit, 0, half)}));
  units.sort((a, b) => b.chosenOn - a.chosenOn || a.unit - b.unit);
  for (const one of units.slice(0, 10)) one.measured = share(one.unit, half, size);
  let chance = 0;
  for (let move = 1; move <= numMoves; move++) {
    const moved = Math.floor((size - half) * move / (numMoves + 1));
    for (let unit = 0; unit < numUnits; unit++) chance = Math.max(chance, share(unit, half, size, moved));
  }
  return {units: units.slice(0, 10), chance};
}

// A text shaded by its surprisal under a model, beside another model, or by the difference of the two.
{
  const {text, models} = JSON.parse(document.getElementById("passages").textContent);
  const characters = [...text], find = id => document.getElementById(id);
  const [model, other, difference, place] = ["model", "other", "difference", "place"].map(find);
  const [views, status] = [[...document.querySelectorAll(".views > div")], [...find("bits").children]];

  // For each character its token: {start, end, bits, share}; the bits of a token are shared evenly by its characters.
  const tokensOf = Object.fromEntries(Object.entries(models).map(([name, costs]) => {
    let start = 0;
    return [name, costs.flatMap(cost => {
      const [length, bits] = Array.isArray(cost) ? cost : [1, cost];
      const value = bits === "infinite" ? Infinity : bits;
      const token = {start, end: start += length, bits: value, share: value === null ? null : value / length};
      return Array(length).fill(token);
    })];
  }));
  const round = bits => bits === null ? "–" : bits === Infinity ? "infinite" : bits === -Infinity ? "−infinite" : bits.toFixed(1).replace("-", "−");
  const shade = bits => bits === null ? "" : `s${Math.min(Math.floor(bits / 1.2), 9)}`;
  const gap = at => {
    const [a, b] = [model, other].map(select => tokensOf[select.value][at].share);
    return a === null || b === null ? null : a === b ? 0 : a - b;
  };
  const signed = bits => bits === null ? "" : `${bits < 0 ? "b" : "a"}${Math.min(Math.round(Math.abs(bits)), 4)}`;
  const nameOf = select => select.selectedOptions[0].textContent;

  const fill = (view, heading, classAt) => {
    view.hidden = false;
    view.querySelector("h3").textContent = heading;
    view.querySelector(".passage").replaceChildren(...characters.map((character, at) => {
      const element = document.createElement("i");
      element.textContent = character;
      element.className = classAt(at) + (character === "\n" ? " end" : "");
      return element;
    }));
  };
  const draw = () => {
    const isPair = Boolean(other?.value), isDifference = isPair && difference.checked;
    if (difference) difference.disabled = !isPair;
    find("scale").hidden = isDifference;
    find("signed").hidden = !isDifference;
    views[1].hidden = true;
    if (isPair) [find("first").textContent, find("second").textContent] = [model, other].map(nameOf);
    if (isDifference) fill(views[0], `${nameOf(model)} minus ${nameOf(other)}`, at => signed(gap(at)));
    else [model, other].slice(0, isPair ? 2 : 1).forEach((select, index) =>
      fill(views[index], nameOf(select), at => shade(tokensOf[select.value][at].share)));
  };
  const describe = (select, at) => {
    const {start, end, bits, share} = tokensOf[select.value][at];
    const token = end - start > 1 ? `, of ${round(bits)} for “${characters.slice(start, end).join("")}”` : "";
    return `${round(share)} bits${token}: ${nameOf(select)}`;
  };
  let isChosen = false;
  const show = at => {
    isChosen = true;
    const isPair = Boolean(other?.value);
    place.value = at;
    for (const element of document.querySelectorAll(".passage i.here")) element.classList.remove("here");
    for (const {children} of document.querySelectorAll(".passage")) children[at]?.classList.add("here");
    const name = {" ": "space", "\n": "line end"}[characters[at]] ?? `“${characters[at]}”`;
    status[0].textContent = `${name}, character ${at + 1}${isPair ? `, difference ${round(gap(at))}` : ""}`;
    [model, other].forEach((select, index) => { status[index + 1].textContent = select?.value ? describe(select, at) : ""; });
    place.setAttribute("aria-valuetext", status.map(line => line.textContent).join("; "));
  };
  const point = event => {
    const element = event.target.closest?.(".passage i");
    if (element) show([...element.parentNode.children].indexOf(element));
  };
  for (const control of [model, other, difference]) control?.addEventListener("change", () => { draw(); if (isChosen) show(+place.value); });
  for (const kind of ["pointerover", "click"]) addEventListener(kind, point);
  place.addEventListener("input", () => show(+place.value));
  const passages = document.querySelectorAll(".passage");
  for (const one of passages) one.addEventListener("scroll", () => { for (const each of passages) each.scrollTop = one.scrollTop; });
  draw();
}

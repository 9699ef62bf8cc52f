// Models have different tokens: the letters before a token, without blanks, say which tokens of other models are there.
let views;
const tokensOf = passage => {
  let start = 0;
  return [...passage.querySelectorAll("i")].map(element => {
    const token = {element, start, end: start + element.textContent.replace(/\s/g, "").length};
    start = token.end;
    return token;
  });
};
const showBits = event => {
  const element = event.target.closest?.(".passage i");
  if (!element) return;
  views ??= [...document.querySelectorAll(".passage")].map(passage => ({model: passage.dataset.model, tokens: tokensOf(passage)}));
  const here = views.flatMap(view => view.tokens).find(token => token.element === element);
  const isBlank = here.start === here.end;
  const found = views.map(({model, tokens}) => {
    const there = tokens.find(token => isBlank ? token.start === here.start && token.end === here.end : token.end > here.start);
    return there && `${model}: ${there.element.textContent.trim() || "space"} ${there.element.title}`;
  });
  document.getElementById("bits").textContent = found.filter(Boolean).join(" · ");
};
for (const kind of ["pointerover", "click"]) addEventListener(kind, showBits);

// Without JavaScript the rows keep their order, and headings look like headings.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const value = (row, place) => { const text = row.cells[place].textContent.trim().replace(/,/g, ""), number = parseFloat(text); return Number.isNaN(number) ? text : number; };
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const order = (a, b) => typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
      body.append(...[...body.rows].sort((a, b) => order(value(a, place), value(b, place)) * (falling ? -1 : 1)));
    });
  });
}
const sections = document.querySelectorAll("details.section");
const show = () => { const section = document.getElementById(location.hash.slice(1))?.closest("details"); if (section) section.open = true; };
addEventListener("hashchange", show);
if (location.hash) show();
addEventListener("beforeprint", () => sections.forEach(section => { section.open = true; }));

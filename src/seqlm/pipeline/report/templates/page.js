// Without JavaScript the rows keep their order, and headings look like headings.
for (const table of document.querySelectorAll("table.sortable")) {
  // The first number of a cell, or its text.
  const value = (row, place) => {
    const text = (row.cells[place].firstChild?.textContent ?? "").trim().replace("−", "-").replaceAll(",", "");
    const number = place ? text.match(/-?\d+(\.\d+)?(e[+-]?\d+)?/) : null;
    return number ? parseFloat(number[0]) : text === "infinite" ? Infinity : text;
  };
  const hasValue = found => typeof found === "number" || !["", "-"].includes(found);
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      // Each group keeps its place, and cells without a value come last.
      for (const body of table.querySelectorAll("tbody:not(.group)")) {
        const rows = [...body.rows].map(row => ({row, found: value(row, place)}));
        rows.sort((a, b) => hasValue(b.found) - hasValue(a.found) || (a.found < b.found ? -direction : a.found > b.found ? direction : 0));
        body.append(...rows.map(({row}) => row));
      }
    });
  });
}
const show = () => { const section = document.getElementById(location.hash.slice(1))?.closest("details"); if (section) section.open = true; };
addEventListener("hashchange", show);
if (location.hash) show();

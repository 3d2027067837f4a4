"use strict";
// Sorting and filtering of tables, and a word where one is cut. Without this script the page holds the same content.
(() => {
  const leading = /^-?\d[\d,]*(\.\d+)?(e[+-]?\d+)?(?=$|[\s%])/i;
  const worth = (cell) => {
    const text = cell.textContent.trim();
    const found = leading.exec(text);
    return { text, number: found ? Number(found[0].replaceAll(",", "")) : NaN };
  };
  const compare = (a, b) => {
    const bothNumbers = !Number.isNaN(a.number) && !Number.isNaN(b.number);
    if (bothNumbers && a.number !== b.number) return a.number - b.number;
    return a.text.localeCompare(b.text, "en", { numeric: true });
  };
  const makeSortable = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        const numeric = head.classList.contains("number");
        const next = now ? (now === "ascending" ? "descending" : "ascending")
          : (numeric ? "descending" : "ascending");
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", next);
        const sign = next === "ascending" ? 1 : -1;
        const rows = [...body.rows].map((row) => ({ row, key: worth(row.cells[column]) }));
        rows.sort((a, b) => sign * compare(a.key, b.key));
        body.append(...rows.map(({ row }) => row));
      });
    });
  };
  const makeFilterable = (box) => {
    const table = box.querySelector("table");
    const rows = [...table.tBodies[0].rows].map((row) => ({ row, text: row.textContent.toLowerCase() }));
    const tools = document.createElement("div");
    tools.className = "tools";
    const input = document.createElement("input");
    input.type = "search";
    input.placeholder = "Filter rows";
    const title = box.querySelector("h4");
    input.setAttribute("aria-label", `Filter rows of ${title ? title.textContent : "the claims"}`);
    const count = document.createElement("output");
    tools.append(input, count);
    box.insertBefore(tools, box.querySelector(".scroll"));
    const apply = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const { row, text } of rows) {
        const verdict = !box.dataset.verdict || row.dataset.verdict === box.dataset.verdict;
        row.hidden = !(verdict && words.every((word) => text.includes(word)));
        shown += row.hidden ? 0 : 1;
      }
      const total = rows.length.toLocaleString("en");
      count.textContent = shown === rows.length ? `${total} rows` : `${shown.toLocaleString("en")} of ${total} rows`;
    };
    input.addEventListener("input", apply);
    apply();
    return apply;
  };
  for (const box of document.querySelectorAll(".table")) {
    makeSortable(box.querySelector("table"));
    if (box.dataset.filter !== "yes") continue;
    const apply = makeFilterable(box);
    if (!box.classList.contains("claims")) continue;
    const buttons = [...document.querySelectorAll("button[data-verdict]")];
    buttons.forEach((button) => button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") === "true";
      buttons.forEach((other) => other.setAttribute("aria-pressed", "false"));
      button.setAttribute("aria-pressed", String(!on));
      box.dataset.verdict = on ? "" : button.dataset.verdict;
      apply();
    }));
  }
  const tellCut = () => {
    for (const box of document.querySelectorAll(".scroll, .drawing")) {
      const inner = box.querySelector("table, img");
      const across = inner.offsetWidth > box.clientWidth + 1;
      const below = inner.offsetHeight > box.clientHeight + 1;
      const ways = [across && "sideways", below && "down"].filter(Boolean).join(" and ");
      if (ways) box.dataset.cut = `scroll ${ways} for the rest`;
      else delete box.dataset.cut;
    }
  };
  tellCut();
  window.addEventListener("resize", tellCut);
  document.addEventListener("toggle", tellCut, true);
  document.addEventListener("input", tellCut);
})();

"use strict";
(() => {
  const make = (tag, text) => { const e = document.createElement(tag); if (text) e.textContent = text; return e; };

  // Tables: a click on a header sorts, once more the other way round.
  const valueOf = (cell, isNumber) => {
    const text = cell.dataset.exact || cell.textContent;
    return text === "" ? null : isNumber ? Number(text) : text;
  };
  const sort = (table, th, column) => {
    const isNumber = th.classList.contains("n"), down = th.getAttribute("aria-sort") === "ascending";
    const body = table.tBodies[0];
    const rows = [...body.rows].map(row => ({row, value: row.cells[column] ? valueOf(row.cells[column], isNumber) : null}));
    rows.sort((a, b) => {
      if (a.value === null || b.value === null) return (a.value === null) - (b.value === null);
      const order = isNumber ? a.value - b.value : a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
      return down ? -order : order;
    });
    body.append(...rows.map(r => r.row));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    th.setAttribute("aria-sort", down ? "descending" : "ascending");
  };
  const copyText = async text => {
    try {
      await navigator.clipboard.writeText(text);
    } catch (e) {
      const area = make("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      if (!done) throw e;
    }
  };
  // A text that a spreadsheet would take for a formula gets ' in front, as printable.Cell in Go does it.
  const isFormula = s => /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]./su.test(s) && !/^[-+](\d+\.?\d*(e[-+]?\d+)?|inf)$/i.test(s);
  const textOf = (table, separator) => {
    const quote = s => separator === "," && /[",\n]/.test(s) ? '"' + s.replaceAll('"', '""') + '"' : s;
    const copied = s => quote(isFormula(s) ? "'" + s : s);
    return [...table.rows].map(row => [...row.cells].map(c => copied(c.dataset.exact || c.dataset.name || c.textContent)).join(separator) + "\n").join("");
  };
  for (const box of document.querySelectorAll(".table")) {
    const table = box.querySelector("table");
    [...table.tHead.rows[0].cells].forEach((th, column) => {
      const button = make("button", th.textContent);
      button.type = "button";
      th.dataset.name ||= th.textContent;
      th.replaceChildren(button);
      button.addEventListener("click", () => sort(table, th, column));
    });
    const tools = make("div"), said = make("span");
    tools.className = "tools";
    said.setAttribute("role", "status");
    for (const [name, separator] of [["Copy TSV", "\t"], ["Copy CSV", ","]]) {
      const button = make("button", name);
      button.type = "button";
      button.addEventListener("click", async () => {
        try {
          await copyText(textOf(table, separator));
          said.textContent = table.tBodies[0].rows.length + " rows copied";
        } catch (e) {
          said.textContent = "The browser does not let this page copy; select the table instead.";
        }
      });
      tools.append(button);
    }
    tools.append(said);
    box.append(tools);
  }

  // Matrices: pointing, tapping and the arrow keys say what is in a cell.
  const grouped = new Intl.NumberFormat("en-US");
  const parsed = new Map();
  const load = id => {
    if (parsed.has(id)) return parsed.get(id);
    const data = JSON.parse(document.getElementById(id).textContent), k = data.names.length;
    const width = 1 + k + (data.block > 1 ? 1 + k : 0);
    data.at = new Map();
    for (let i = 0; i < data.cells.length; i += width) data.at.set(data.cells[i], data.cells.slice(i + 1, i + width));
    parsed.set(id, data);
    return data;
  };
  const ranksOf = (data, i) => {
    const first = i * data.block, last = Math.min(first + data.block, data.ranks) - 1;
    return first === last ? String(first) : first + " to " + last;
  };
  const tell = (data, row, column) => {
    const where = data.block > 1 ? "ranks " + ranksOf(data, row) + " \u2192 ranks " + ranksOf(data, column) : row + " \u2192 " + column;
    const found = data.at.get(row * data.n + column);
    if (!found) return where + ": none";
    const k = data.names.length;
    const values = (from, what) => data.names.map((name, i) => grouped.format(found[from + i]) + " " + name).join(", ") + what;
    if (data.block === 1) return where + ": " + values(0, "");
    return where + ": " + values(0, "") + " between " + grouped.format(found[k]) + " pairs; of a pair at most " + values(k + 1, "");
  };
  for (const box of document.querySelectorAll(".matrix")) {
    const svg = box.querySelector("svg"), image = box.querySelector(".cells");
    const left = Number(box.dataset.left), top = Number(box.dataset.top), side = Number(box.dataset.side);
    const said = box.previousElementSibling;
    said.textContent = "Point at a cell, tap it, or use the arrow keys.";
    const cursor = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    cursor.setAttribute("class", "cursor");
    cursor.setAttribute("visibility", "hidden");
    svg.append(cursor);
    let row = 0, column = 0;
    const show = () => {
      const data = load(box.dataset.cells), cell = side / data.n;
      row = Math.max(0, Math.min(data.n - 1, row));
      column = Math.max(0, Math.min(data.n - 1, column));
      for (const [name, value] of [["x", left + column * cell], ["y", top + row * cell], ["width", cell], ["height", cell], ["visibility", "visible"]])
        cursor.setAttribute(name, value);
      said.textContent = tell(data, row, column);
    };
    const point = event => {
      const r = image.getBoundingClientRect();
      const x = (event.clientX - r.left) / r.width, y = (event.clientY - r.top) / r.height;
      if (x < 0 || y < 0 || x >= 1 || y >= 1) return;
      const n = load(box.dataset.cells).n;
      row = Math.floor(y * n);
      column = Math.floor(x * n);
      show();
    };
    box.tabIndex = 0;
    box.setAttribute("role", "application");
    box.setAttribute("aria-label", svg.getAttribute("aria-label") + "; arrow keys move from cell to cell");
    box.addEventListener("pointermove", point);
    box.addEventListener("click", point);
    box.addEventListener("keydown", event => {
      const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
      if (!step) return;
      event.preventDefault();
      row += step[0];
      column += step[1];
      show();
    });
    box.addEventListener("focus", () => { if (box.matches(":focus-visible")) show(); });
  }
})();

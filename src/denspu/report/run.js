"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const read = (id) => JSON.parse(find(id).textContent);
  const commas = (n) => n.toLocaleString("en-US");

  // --- light and dark ---------------------------------------------------------------
  const KEY = "denspu-theme";
  const store = {
    get() { try { return localStorage.getItem(KEY); } catch { return null; } },
    set(value) { try { localStorage.setItem(KEY, value); } catch { /* not kept */ } },
  };
  function themes() {
    const root = document.documentElement, button = find("theme");
    const system = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
    const show = () => {
      button.textContent = isDark() ? "Light" : "Dark";
      button.setAttribute("aria-label", `Use the ${isDark() ? "light" : "dark"} colours`);
    };
    const kept = store.get();
    if (kept === "dark" || kept === "light") root.dataset.theme = kept;
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      store.set(root.dataset.theme);
      show();
    });
    system.addEventListener("change", show);
    button.hidden = false;
    show();
  }

  // --- the table of items -----------------------------------------------------------
  const PAGE = 25;
  function items() {
    const data = read("items-data"), table = find("items-table");
    const percent = (p) => {
      if (p === null) return "–";
      if (p > 0 && p < 0.01) return "<1\u00a0%";
      if (p > 0.99 && p < 1) return ">99\u00a0%";
      return `${Math.round(100 * p)}\u00a0%`;
    };
    const decimals = { minimumFractionDigits: data.decimals, maximumFractionDigits: data.decimals };
    const score = (s) => (s === null ? "–" : s.toLocaleString("en-US", decimals));
    const long = data.extra.some((e) => e.long);
    const columns = [
      { name: "Rank", values: data.rank, className: "right", show: commas },
      { name: "Item", values: data.item, className: long ? "name" : "name grow", row: true },
      { name: "Call", values: data.decision, show: (d) => (d ? "positive" : "negative"), tag: true },
      { name: "Chance", values: data.chance, className: "right", show: percent },
      ...data.extra.map((e) => ({ name: e.name, values: e.values, className: e.right ? "right" : e.long ? "grow" : e.values.some((v) => String(v).length > 24) ? "" : "tight" })),
      { name: "Score", values: data.score, className: "right wide", show: score },
    ];
    if (data.stages.length > 1)
      columns.push({ name: "How", values: data.stage.map((k) => data.stages[k]), className: "wide soft tight" });
    const words = data.item.map((name, i) =>
      [name, data.why[i] || "", ...data.extra.map((e) => e.values[i])].join(" ").toLowerCase());
    const order = new Intl.Collator("en", { numeric: true });
    let sorted = { column: 0, up: true }, page = 0, shown = data.item.map((_, i) => i);

    const plain = (text) => /^-?[\d,]+(\.\d+)?(e[+-]?\d+)?$/.test(text) ? Number(text.replaceAll(",", "")) : null;
    function compare(values, up) {
      const sign = up ? 1 : -1;
      return (i, j) => {
        let a = values[i], b = values[j];
        const gapA = a === null || a === "–", gapB = b === null || b === "–";
        if (gapA || gapB) return gapA - gapB || i - j;
        if (typeof a === "string") {
          const m = plain(a), n = plain(b);
          if (m === null || n === null) return sign * order.compare(a, b) || i - j;
          a = m; b = n;
        }
        return sign * (a - b) || i - j;
      };
    }
    // A long name may be broken after a slash, a dot, a dash or an underscore.
    function broken(text) {
      const found = make("bdi");
      for (const part of text.split(/(?<=[/\\_.-])/)) found.append(part, make("wbr"));
      return found;
    }
    const body = make("tbody"), head = make("thead"), row = make("tr");
    columns.forEach((column, k) => {
      const cell = make("th", (column.className || "").replace("name", ""));
      cell.scope = "col";
      const button = make("button");
      button.type = "button";
      button.append(make("bdi", "", column.name), make("span", "arrow", ""));
      button.addEventListener("click", () => {
        const up = sorted.column === k ? !sorted.up : column.name !== "Score" && column.name !== "Chance" && column.name !== "Call";
        sorted = { column: k, up };
        update();
      });
      cell.append(button);
      row.append(cell);
    });
    head.append(row);
    table.append(head, body);

    function update() {
      const needle = find("items-find").value.trim().toLowerCase(), call = find("items-decision").value;
      const parts = needle.split(/\s+/).filter(Boolean);
      shown = data.item.map((_, i) => i).filter((i) =>
        (call === "" || data.decision[i] === Number(call)) && parts.every((p) => words[i].includes(p)));
      shown.sort(compare(columns[sorted.column].values, sorted.up));
      [...row.children].forEach((cell, k) => {
        const here = k === sorted.column;
        cell.setAttribute("aria-sort", here ? (sorted.up ? "ascending" : "descending") : "none");
        cell.querySelector(".arrow").textContent = here ? (sorted.up ? "▲" : "▼") : "";
      });
      page = 0;
      draw();
    }
    function draw() {
      const pages = Math.max(1, Math.ceil(shown.length / PAGE));
      page = Math.min(Math.max(page, 0), pages - 1);
      body.replaceChildren(...shown.slice(page * PAGE, (page + 1) * PAGE).map((i) => {
        const line = make("tr");
        for (const column of columns) {
          const text = column.show ? column.show(column.values[i]) : column.values[i];
          const cell = make(column.row ? "th" : "td", column.className);
          if (column.row) cell.scope = "row";
          if (column.tag) cell.append(make("span", `tag ${text}`, text));
          else cell.append(column.row ? broken(text) : make("bdi", "", text));
          if (column.row && data.why[i]) cell.append(make("div", "why soft", data.why[i]));
          if (column.row && long) cell.append(make("div", "under soft", data.extra.find((e) => e.long).values[i]));
          line.append(cell);
        }
        return line;
      }));
      if (!shown.length) {
        const none = make("td", "none", "No item matches.");
        none.colSpan = columns.length;
        body.append(make("tr"));
        body.lastChild.append(none);
      }
      fit();
      find("items-status").textContent = shown.length === data.item.length
        ? `${commas(shown.length)} items` : `${commas(shown.length)} of ${commas(data.item.length)} items`;
      find("items-page").textContent = `page ${commas(page + 1)} of ${commas(pages)}`;
      const ends = { first: page === 0, back: page === 0, next: page === pages - 1, last: page === pages - 1 };
      for (const button of find("items-pager").querySelectorAll("button")) button.disabled = ends[button.dataset.step];
    }
    // The heading stays in sight where the table needs no scrolling of its own.
    function fit() {
      const scroll = find("items-scroll"), top = document.querySelector(".top");
      scroll.classList.remove("fits");
      scroll.classList.toggle("fits", table.offsetWidth <= scroll.clientWidth);
      table.style.setProperty("--top", `${top.offsetHeight}px`);
    }
    addEventListener("resize", fit);
    let wait = 0;
    find("items-find").addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(update, 120); });
    find("items-decision").addEventListener("change", update);
    find("items-controls").addEventListener("submit", (event) => event.preventDefault());
    find("items-pager").addEventListener("click", (event) => {
      const step = event.target.dataset.step;
      if (!step) return;
      page = { first: 0, back: page - 1, next: page + 1, last: Infinity }[step];
      draw();
    });
    find("items-controls").hidden = false;
    find("items-pager").hidden = data.item.length <= PAGE;
    update();
  }

  // --- the map ----------------------------------------------------------------------
  const WIDTH = 1000, REACH = 40;
  function map() {
    const svg = find("map-svg");
    if (!svg) return;
    const data = read("map-data"), card = find("map-card"), ring = find("map-ring"), sheet = find("map-sheet");
    const hidden = new Set();
    let current = -1;

    function nearest(x, y, reach) {
      let best = -1, least = reach * reach;
      for (let i = 0; i < data.x.length; i++) {
        if (hidden.has(data.role[i])) continue;
        const d = (data.x[i] - x) ** 2 + (data.y[i] - y) ** 2;
        if (d < least) { least = d; best = i; }
      }
      return best;
    }
    function ahead(dx, dy) {
      if (current < 0) return nearest(WIDTH / 2, data.height / 2, Infinity);
      let best = -1, least = Infinity;
      for (let i = 0; i < data.x.length; i++) {
        if (i === current || hidden.has(data.role[i])) continue;
        const x = data.x[i] - data.x[current], y = data.y[i] - data.y[current];
        const along = x * dx + y * dy, across = Math.abs(x * dy - y * dx);
        if (along <= 0) continue;
        const cost = along + 3 * across;
        if (cost < least) { least = cost; best = i; }
      }
      return best < 0 ? current : best;
    }
    function fill(i) {
      const parts = [];
      if (sheet) {
        const thumb = make("div", "thumb"), rows = Math.ceil(data.x.length / data.row);
        const across = Math.min(data.row, data.x.length), side = 6;
        thumb.style.backgroundImage = `url("${sheet.src}")`;
        thumb.style.backgroundSize = `${side * across}rem ${side * rows}rem`;
        thumb.style.backgroundPosition = `${-side * (i % data.row)}rem ${-side * Math.floor(i / data.row)}rem`;
        parts.push(thumb);
      }
      const name = make("b");
      name.append(make("bdi", "", data.name[i]));
      parts.push(name, make("div", "", data.labels[data.role[i]]), make("div", "soft", data.score[i]));
      if (data.text[i]) parts.push(make("div", "", data.text[i]));
      if (data.cells[i].length) {
        const list = make("dl");
        data.cells[i].forEach((value, k) => list.append(make("dt", "", data.columns[k]), make("dd", "", value)));
        parts.push(list);
      }
      card.replaceChildren(...parts);
    }
    function show(i) {
      if (i < 0) { current = -1; card.hidden = true; ring.setAttribute("cx", -99); ring.setAttribute("cy", -99); return; }
      if (i !== current) fill(i);
      current = i;
      ring.setAttribute("cx", data.x[i]);
      ring.setAttribute("cy", data.y[i]);
      card.hidden = false;
      const box = svg.getBoundingClientRect(), scale = box.width / WIDTH, gap = 16;
      const x = data.x[i] * scale, y = data.y[i] * scale;
      const w = card.offsetWidth, h = card.offsetHeight;
      const left = x + gap + w <= box.width ? x + gap : x - gap - w >= 0 ? x - gap - w : Math.max(0, (box.width - w) / 2);
      const beside = left >= x || left + w <= x;
      const top = beside ? Math.min(Math.max(y - h / 2, 0), Math.max(0, box.height - h)) : y + gap;
      card.style.left = `${left}px`;
      card.style.top = `${top}px`;
    }
    function at(event) {
      const box = svg.getBoundingClientRect(), scale = WIDTH / box.width;
      const reach = event.pointerType === "touch" ? 24 * scale : REACH;
      return nearest((event.clientX - box.left) * scale, (event.clientY - box.top) * scale, reach);
    }
    svg.addEventListener("pointermove", (event) => { if (event.pointerType !== "touch") show(at(event)); });
    svg.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") show(-1); });
    svg.addEventListener("click", (event) => show(at(event)));
    document.addEventListener("pointerdown", (event) => { if (!svg.contains(event.target)) show(-1); });
    svg.addEventListener("focus", () => { if (current < 0 && svg.matches(":focus-visible")) show(ahead(0, 0)); });
    svg.addEventListener("blur", () => show(-1));
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    svg.addEventListener("keydown", (event) => {
      if (event.key === "Escape") show(-1);
      if (!(event.key in steps)) return;
      event.preventDefault();
      show(ahead(...steps[event.key]));
    });
    find("map-legend").addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      const role = button.dataset.role, off = !hidden.has(role);
      if (off) hidden.add(role); else hidden.delete(role);
      button.setAttribute("aria-pressed", String(!off));
      for (const layer of svg.querySelectorAll(".layer"))
        if (layer.dataset.role === role) layer.classList.toggle("off", off);
      show(-1);
    });
  }

  // --- links, paper, clipboard ------------------------------------------------------
  function unfold() {
    const target = location.hash.length > 1 && find(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const fold = target.closest("details");
    if (fold) { fold.open = true; target.scrollIntoView(); }
  }
  function paper() {
    let opened = [];
    addEventListener("beforeprint", () => {
      opened = [...document.querySelectorAll("details:not([open])")].filter((d) => !d.closest(".card"));
      for (const fold of opened) fold.open = true;
    });
    addEventListener("afterprint", () => { for (const fold of opened) fold.open = false; opened = []; });
  }
  function clipboard() {
    const button = find("copy");
    if (!navigator.clipboard) return;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(find("command").textContent);
        button.textContent = "Copied";
      } catch { button.textContent = "Select and copy"; }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }

  themes();
  items();
  map();
  paper();
  clipboard();
  addEventListener("hashchange", unfold);
  unfold();
})();

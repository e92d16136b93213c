"use strict";
// Draws the charts from their Vega-Lite specifications, and shows one pair of layers at a time.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const n = data.names.length;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const views = new Map(); // chart box → Vega view
  const turns = new Map(); // chart box → how often it was drawn
  const byId = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];
  let mode = dark.matches ? "dark" : "light";
  let pair = { i: 0, j: 0 };
  let focus = "";
  let chosenColour = "";

  // ---- numbers -------------------------------------------------------------------------------------------------
  const fixed = (value, digits = 2) => value.toFixed(digits).replace(/^-(?=[0.]+$)/, "").replace("-", "−"); // no minus before a rounded 0
  const pText = (p) => (p < 0.0001 ? "p < 0.0001" : `p = ${Number(p.toPrecision(2))}`);
  const entry = (flat, i, j) => (flat ? flat[i * n + j] : null);
  const known = (value) => value !== null && value !== undefined;
  const pairIndex = (i, j) => {
    const [low, high] = i < j ? [i, j] : [j, i];
    return low * n - (low * (low + 1)) / 2 + (high - low - 1);
  };

  function contributions(i, j) {
    if (i !== j) return data.contributions[pairIndex(i, j)];
    return data.features.map(() => null); // a layer against itself has nothing to explain
  }

  function sentence(i, j) {
    if (i === j) return "This is one layer against itself: the weighted τ is 1 by definition. Choose two different layers.";
    const [first, second] = i < j ? [i, j] : [j, i];
    const names = { "{a}": data.names[first], "{b}": data.names[second] };
    return data.sentences[data.sentence[pairIndex(i, j)]].replace(/\{[ab]\}/g, (key) => names[key]);
  }

  // ---- the data of the charts ----------------------------------------------------------------------------------
  function cells(measure) {
    return data.matrices[measure].map((value, k) => {
      const i = Math.floor(k / n), j = k % n;
      return { i, j, value, a: data.names[i], b: data.names[j] };
    });
  }

  function scatter() {
    return data.features.map((feature, k) => ({ feature, a: data.importance[pair.i][k], b: data.importance[pair.j][k] }));
  }

  // Of the importance of a layer; negative ones count as 0.
  function share(row, k) {
    const positive = data.importance[row].map((value) => Math.max(0, value ?? 0));
    const total = positive.reduce((sum, value) => sum + value, 0);
    return total > 0 ? positive[k] / total : 0;
  }

  function bars() {
    const parts = contributions(pair.i, pair.j);
    const rows = data.features.map((feature, k) => ({ feature, contribution: parts[k], matters: share(pair.i, k) >= data.matters || share(pair.j, k) >= data.matters }));
    return [...rows, { feature: data.total, contribution: entry(data.matrices[data.measure], pair.i, pair.j) }];
  }

  function colour() {
    if (chosenColour !== "") return Number(chosenColour);
    const together = data.features.map((_, k) => data.importance[pair.i][k] + data.importance[pair.j][k]);
    const top = data.features[together.indexOf(Math.max(...together))];
    return data.colours.findIndex((c) => c.feature === top);
  }

  function words(row) {
    const { word, context, steps, points } = data.words;
    const values = data.colours[colour()].values;
    return word.map((text, k) => ({
      word: text, context: context[k], value: values[k],
      x: points[row][2 * k] / steps, y: points[row][2 * k + 1] / steps,
    }));
  }

  function specFor(box) {
    const name = box.dataset.chart;
    const specs = data.specs[mode];
    if (name === "words") {
      const row = box.dataset.side === "a" ? pair.i : pair.j;
      return [specs[`words-${colour()}`], { words: words(row) }];
    }
    if (name === "scatter") return [specs.scatter, { scatter: scatter() }];
    if (name === "bars") return [specs.bars, { bars: bars() }];
    if (name.startsWith("matrix-")) return [specs[name], { [name]: cells(name.slice("matrix-".length)) }];
    return [specs[name], name in data.tables ? { [name]: data.tables[name] } : {}];
  }

  // ---- drawing -------------------------------------------------------------------------------------------------
  function size(spec, box) {
    const width = Math.floor(box.clientWidth);
    if (box.dataset.fit === "own") return spec;
    if (box.dataset.fit === "cells") {
      // Whole pixels for every cell, or hairlines show between them; the rest is room for the names.
      const side = n * Math.max(1, Math.floor((width - 44) / n));
      return { ...spec, width: side, height: side, padding: 2, autosize: { type: "pad" } };
    }
    if (box.dataset.fit === "width") return { ...spec, width, autosize: { type: "fit-x", contains: "padding" } };
    const height = Math.round(width * Number(box.dataset.ratio));
    return { ...spec, width, height, autosize: { type: "fit", contains: "padding" } };
  }

  function scatterSpec(spec) {
    const values = scatter().flatMap((row) => [row.a, row.b]).filter(known);
    const low = Math.min(0, ...values), high = Math.max(0.01, ...values);
    const ends = { low, high: high + 0.15 * (high - low) };
    return { ...named(spec), params: spec.params.map((param) => ({ ...param, value: ends[param.name] })) };
  }

  function named(spec) {
    // The layers' names take the place of {a} and {b} in the titles of the axes.
    const names = { "{a}": data.names[pair.i], "{b}": data.names[pair.j] };
    const fill = (value, key) => {
      if (key === "title" && typeof value === "string") return value.replace(/\{[ab]\}/g, (mark) => names[mark]);
      if (Array.isArray(value)) return value.map((v) => fill(v));
      if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, fill(v, k)]));
      return value;
    };
    return fill(spec);
  }

  // Vega writes a role and a label of its own on the element that it draws in: so not on the box, which has better ones.
  function canvas(box) {
    if (!box.firstElementChild) {
      const inner = document.createElement("div");
      inner.setAttribute("aria-hidden", "true");
      box.append(inner);
    }
    return box.firstElementChild;
  }

  function draw(box) {
    if (!box.clientWidth) return;
    const [bare, tables] = specFor(box);
    let spec = size(bare, box);
    if (box.dataset.chart === "scatter") spec = scatterSpec(spec);
    spec = { ...spec, datasets: { ...spec.datasets, ...tables } };
    box.dataset.width = box.clientWidth;
    const turn = (turns.get(box) ?? 0) + 1;
    turns.set(box, turn);
    const options = { actions: false, renderer: "svg", config: data.configs[mode], defaultStyle: false, tooltip: showTooltip };
    vegaEmbed(canvas(box), spec, options).then(({ view, finalize }) => {
      if (turns.get(box) !== turn) return finalize(); // drawn anew in the meantime
      views.get(box)?.finalize();
      views.set(box, view);
      box.vegaView = view; // for what saves it as a file
      sendSignals(box);
    });
  }

  function sendSignals(box) {
    const view = views.get(box);
    if (box.classList.contains("cells")) view?.signal("row", pair.i).signal("column", pair.j).run();
    if (box.dataset.chart.startsWith("profile-")) view?.signal("focus", focus).run();
  }

  const drawAll = () => all(".chart").forEach(draw);

  function showTooltip(_handler, event, _item, value) {
    const tooltip = byId("tooltip");
    tooltip.hidden = value === null || value === undefined || value === "";
    if (tooltip.hidden) return;
    const lines = Object.entries(value).filter(([, text]) => text !== "" && text !== "null");
    tooltip.replaceChildren(...lines.map(([key, text]) => {
      const line = document.createElement("div"), label = document.createElement("span");
      label.textContent = key;
      line.append(label, String(text));
      return line;
    }));
    const box = tooltip.getBoundingClientRect();
    tooltip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    const below = event.clientY + 16;
    tooltip.style.top = `${below + box.height > innerHeight ? event.clientY - box.height - 10 : below}px`;
  }

  // ---- the chosen pair -----------------------------------------------------------------------------------------
  // A share outside 0 … 1 means that the two parts of the similarity have different signs.
  function explained(share, value, i, j) {
    const [low, high] = [entry(data.share_low, i, j), entry(data.share_high, i, j)];
    const range = known(low) && known(high) ? ` (${fixed(100 * low, 0)} to ${fixed(100 * high, 0)} %)` : "";
    if (share >= 0 && share <= 1) return `the features explain at least ${fixed(100 * share, 0)} %${range} of it`;
    return `a sum over the features alone would give ${fixed(share * value)}, what it leaves ${fixed((1 - share) * value)}`;
  }

  function numbers(i, j) {
    const lines = [];
    const tau = entry(data.matrices[data.measure], i, j);
    if (known(tau)) {
      const [low, high] = [entry(data.low, i, j), entry(data.high, i, j)];
      const range = known(low) && known(high) ? `; ${fixed(low)} to ${fixed(high)} with other sentences` : "";
      lines.push([fixed(tau), `likeness by features, weighted τ${range}`]);
    }
    const p = entry(data.p_block, i, j);
    if (known(p) && i !== j) {
      lines.push([pText(p), "that chance ranks the features so alike, corrected for all pairs of layers of the two systems"]);
    }
    for (const measure of Object.keys(data.matrices)) {
      const value = measure === data.measure ? null : entry(data.matrices[measure], i, j);
      if (!known(value)) continue;
      const share = measure === "rsa" && i !== j ? entry(data.share, i, j) : null;
      const sure = i === j ? {} : data.geometry[measure] ?? {};
      const [low, high, p] = [entry(sure.low, i, j), entry(sure.high, i, j), entry(sure.p_block, i, j)];
      const range = known(low) && known(high) ? `; ${fixed(low)} to ${fixed(high)} with other sentences` : "";
      const chance = known(p) ? `; ${pText(p)} that chance gives so much, corrected for all pairs of layers` : "";
      const part = range + chance + (known(share) ? `; ${explained(share, value, i, j)}` : "");
      const what = data.kinds[measure] === "distance" ? "distance" : "likeness";
      lines.push([fixed(value), `${what} by geometry, ${data.labels[measure]}${part}`]);
    }
    return lines;
  }

  function describePair() {
    const [a, b] = [data.names[pair.i], data.names[pair.j]];
    const lines = numbers(pair.i, pair.j);
    byId("sentence").textContent = sentence(pair.i, pair.j);
    byId("numbers").replaceChildren(...lines.flatMap(([value, meaning]) => {
      const dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = value;
      dd.textContent = meaning;
      return [dt, dd];
    }));
    byId("row").value = pair.i;
    byId("column").value = pair.j;
    const peek = document.querySelector(".peek");
    peek.textContent = `${a} and ${b}: weighted τ ${lines.length ? lines[0][0] : "unknown"} · why ↓`;
    byId("announce").textContent = `${a} and ${b}. ${lines.map(([value, meaning]) => `${value}, ${meaning}`).join(". ")}. ${byId("sentence").textContent}`;
    describeCharts(a, b);
  }

  function describeCharts(a, b) {
    const label = (chart, text) => all(`[data-chart="${chart}"]`).forEach((box) => box.setAttribute("aria-label", text));
    const ranked = (rows, key) => [...rows].sort((x, y) => y[key] - x[key]).slice(0, 3);
    const top = ranked(scatter(), "a").map((row) => row.feature).join(", ");
    const other = ranked(scatter(), "b").map((row) => row.feature).join(", ");
    label("scatter", `Scatter of feature importance. Highest in ${a}: ${top}. Highest in ${b}: ${other}.`);
    const parts = bars().filter((row) => known(row.contribution)).map((row) => `${row.feature} ${fixed(row.contribution)}`);
    label("bars", `Bars of what each feature adds to the weighted τ: ${parts.join(", ")}.`);
    if (!data.words) return;
    for (const [side, name, row] of [["a", a, pair.i], ["b", b, pair.j]]) {
      const [x, y] = data.words.explained[row];
      const share = known(x) && known(y) ? `${fixed(100 * (x + y), 0)} % of the variance` : "";
      byId(`words-${side}`).textContent = `Inside ${name}`;
      byId(`explained-${side}`).textContent = share && `the map shows ${share}`;
      document.querySelector(`[data-side="${side}"]`).setAttribute("aria-label",
        `Map of ${data.words.word.length} items in ${name}, coloured by ${data.colours[colour()].feature}. ${share}`);
    }
  }

  let waiting = false;
  function select(i, j, { remember = true } = {}) {
    pair = { i: Math.max(0, Math.min(n - 1, i)), j: Math.max(0, Math.min(n - 1, j)) };
    describePair();
    all(".cells").forEach(sendSignals);
    if (remember) {
      const link = new URLSearchParams({ a: data.names[pair.i], b: data.names[pair.j] });
      history.replaceState(null, "", `#${link}`);
    }
    if (waiting) return; // one redraw per frame, however fast the keys repeat
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      all(".chart.pair").forEach(draw);
    });
  }

  function cellAt(box, event) {
    const view = views.get(box), svg = box.querySelector("svg");
    const place = svg.getBoundingClientRect();
    const [left, top] = view.origin();
    const padding = view.padding();
    const j = view.scale("x").invert(event.clientX - place.left - left - padding.left);
    const i = view.scale("y").invert(event.clientY - place.top - top - padding.top);
    return i >= 0 && i < n && j >= 0 && j < n ? [Math.floor(i), Math.floor(j)] : null;
  }

  const nextSystem = (place, step) => {
    const owner = data.owner[place] + step;
    const first = data.owner.indexOf(owner);
    return first >= 0 ? first : step < 0 ? 0 : n - 1;
  };
  const KEYS = {
    ArrowUp: () => [pair.i - 1, pair.j], ArrowDown: () => [pair.i + 1, pair.j],
    ArrowLeft: () => [pair.i, pair.j - 1], ArrowRight: () => [pair.i, pair.j + 1],
    Home: () => [pair.i, 0], End: () => [pair.i, n - 1],
    PageUp: () => [nextSystem(pair.i, -1), pair.j], PageDown: () => [nextSystem(pair.i, 1), pair.j],
  };

  function listen() {
    for (const box of all(".cells")) {
      box.addEventListener("click", (event) => {
        const cell = cellAt(box, event);
        if (cell) select(...cell);
      });
      box.addEventListener("keydown", (event) => {
        if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        select(...KEYS[event.key]());
      });
    }
    all(".picks button").forEach((button) =>
      button.addEventListener("click", () => select(Number(button.dataset.i), Number(button.dataset.j))));
    for (const id of ["row", "column"]) {
      byId(id).addEventListener("change", () => select(Number(byId("row").value), Number(byId("column").value)));
    }
    byId("colour")?.addEventListener("change", (event) => {
      chosenColour = event.target.value;
      select(pair.i, pair.j, { remember: false });
    });
    document.querySelector("select.measure")?.addEventListener("change", (event) => {
      const box = event.target.closest("figure").querySelector(".cells");
      box.dataset.chart = `matrix-${event.target.value}`;
      box.setAttribute("aria-label", `${event.target.selectedOptions[0].dataset.alt} Arrow keys move from cell to cell.`);
      draw(box);
    });
    all("button.chip").forEach((chip) => chip.addEventListener("click", () => {
      focus = focus === chip.dataset.feature ? "" : chip.dataset.feature;
      all("button.chip").forEach((other) => other.setAttribute("aria-pressed", String(other.dataset.feature === focus)));
      all('[data-chart^="profile-"]').forEach(sendSignals);
    }));
  }

  function fillSelects() {
    for (const id of ["row", "column"]) {
      byId(id).replaceChildren(...data.systems.map((system, s) => {
        const group = document.createElement("optgroup");
        group.label = system;
        data.names.forEach((name, k) => { if (data.owner[k] === s) group.append(new Option(name, k)); });
        return group;
      }));
    }
  }

  function firstPair() {
    const link = new URLSearchParams(location.hash.slice(1));
    const [i, j] = [data.names.indexOf(link.get("a")), data.names.indexOf(link.get("b"))];
    if (i >= 0 && j >= 0) return [i, j];
    const pick = document.querySelector(".picks button");
    return pick ? [Number(pick.dataset.i), Number(pick.dataset.j)] : [0, n - 1];
  }

  // ---- light and dark, print, resizing -------------------------------------------------------------------------
  function setMode(next) {
    if (next === mode) return;
    mode = next;
    drawAll();
  }
  const screenMode = () => (dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => setMode(screenMode()));
  window.addEventListener("beforeprint", () => {
    all("details").forEach((part) => { part.open = true; });
    setMode("light");
  });
  window.addEventListener("afterprint", () => setMode(screenMode()));

  let timer = 0;
  new ResizeObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(() => all(".chart").filter((box) => Number(box.dataset.width) !== box.clientWidth).forEach(draw), 120);
  }).observe(document.body);
  new IntersectionObserver(([why]) => document.querySelector(".peek").classList.toggle("here", why.isIntersecting))
    .observe(byId("why"));

  fillSelects();
  [pair.i, pair.j] = firstPair();
  drawAll();
  describePair();
  listen();
  document.documentElement.dataset.ready = "true";
})();

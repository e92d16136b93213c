"use strict";
// The pair of layers that is shown, and what the charts draw; `Charts` draws them, `Explaining` finds the reasons.
const Report = (() => {
  const byId = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];
  let data, n; // what the page shows; the number of layers
  let pair = { i: 0, j: 0 };
  let focus = "";
  let chosenColour = "";

  // ---- numbers -------------------------------------------------------------------------------------------------
  const fixed = (value, digits = 2) => value.toFixed(digits).replace(/^-(?=[0.]+$)/, "").replace("-", "−"); // no minus before a rounded 0
  const pText = (p) => (p < 0.0001 ? "p < 0.0001" : `p = ${Number(p.toPrecision(2))}`);
  const entry = (flat, i, j) => (flat ? flat[i * n + j] : null);
  const known = (value) => value !== null && value !== undefined;

  function contributions(i, j) {
    if (i === j) return data.features.map(() => null); // a layer against itself has nothing to explain
    return Explaining.contributions(data.importance[i], data.importance[j]).map((part) => (Number.isFinite(part) ? part : null));
  }

  function sentence(i, j) {
    if (i === j) return "This is one layer against itself: the weighted τ is 1 by definition. Choose two different layers.";
    const [a, b] = i < j ? [i, j] : [j, i];
    return Explaining.sentence(data.names[a], data.names[b], data.features, data.importance[a], data.importance[b], data.matters);
  }

  // ---- the data of the charts ----------------------------------------------------------------------------------
  function cells(measure) {
    return data.matrices[measure].map((value, k) => {
      const i = Math.floor(k / n), j = k % n;
      return { i, j, value, a: data.names[i], b: data.names[j] };
    });
  }

  function importantInOne() {
    const [a, b] = [pair.i, pair.j].map((row) => Explaining.shares(data.importance[row]));
    return data.features.map((_, k) => Math.max(a[k], b[k]) >= data.matters);
  }

  function scatter() {
    const matters = importantInOne(), [a, b] = [data.importance[pair.i], data.importance[pair.j]];
    return data.features.map((feature, k) => ({ feature, a: a[k], b: b[k], matters: matters[k] }));
  }

  function bars() {
    const parts = contributions(pair.i, pair.j), matters = importantInOne();
    const rows = data.features.map((feature, k) => ({ feature, contribution: parts[k], matters: matters[k] }));
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

  // What `Charts` draws in a box, in the colours of light.
  function source(box) {
    const name = box.dataset.chart, spec = data.specs[name];
    if (name === "words") {
      const row = box.dataset.side === "a" ? pair.i : pair.j;
      return { spec: data.specs[`words-${colour()}`], tables: { words: words(row) } };
    }
    if (name === "scatter") return { spec: scatterSpec(spec), tables: { scatter: scatter() } };
    if (name === "bars") return { spec, tables: { bars: bars() } };
    if (name.startsWith("matrix-")) return { spec, tables: { [name]: spec.usermeta.picture ? data.matrices[measureOf(box)] : cells(measureOf(box)) } };
    return { spec, tables: name in data.tables ? { [name]: data.tables[name] } : {} };
  }

  const measureOf = (box) => box.dataset.chart.slice("matrix-".length);

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

  function sendSignals(box) {
    const view = Charts.viewOf(box);
    if (box.classList.contains("cells")) view?.signal("row", pair.i).signal("column", pair.j).run();
    if (box.dataset.chart.startsWith("profile-")) view?.signal("focus", focus).run();
  }

  // ---- the chosen pair -----------------------------------------------------------------------------------------
  // A line is a number and what it says. A share outside 0 … 1 means that the two parts of the similarity have different signs.
  function explained(share, value, i, j) {
    const [low, high] = [entry(data.share_low, i, j), entry(data.share_high, i, j)];
    const range = known(low) && known(high) ? `; ${fixed(100 * low, 0)} to ${fixed(100 * high, 0)} % with other sentences` : "";
    if (share >= 0 && share <= 1) return [`${fixed(100 * share, 0)} %`, `of that a sum over the features makes up${range}`];
    return [fixed(share * value), `is what a sum over the features alone would give; what it leaves, ${fixed((1 - share) * value)}`];
  }

  function rangeOf(lows, highs, i, j) {
    const [low, high] = [entry(lows, i, j), entry(highs, i, j)];
    return known(low) && known(high) ? `; ${fixed(low)} to ${fixed(high)} with other sentences` : "";
  }

  function ceilingOf(ceilings, i, j) {
    const ceiling = i === j ? null : entry(ceilings, i, j);
    return known(ceiling) ? `; layers alike in truth would reach ${fixed(ceiling)}` : "";
  }

  function geometry(measure, value, i, j) {
    const what = data.kinds[measure] === "distance" ? "distance" : "likeness";
    const name = `${what} by geometry, ${data.labels[measure]}`;
    if (i === j) return [[fixed(value), name]];
    const sure = data.geometry[measure] ?? {};
    const lines = [[fixed(value), name + rangeOf(sure.low, sure.high, i, j)]];
    const [p, across, share] = [entry(sure.p_block, i, j), entry(sure.across, i, j), entry(data.share, i, j)];
    if (known(across)) lines.push([fixed(across), `when no sentence is shown to both${ceilingOf(sure.ceiling, i, j)}`]);
    if (known(p)) lines.push([pText(p), "that chance gives so much, corrected for all pairs of layers"]);
    if (measure === "rsa" && known(share)) lines.push(explained(share, value, i, j));
    return lines;
  }

  function numbers(i, j) {
    const lines = [];
    const tau = entry(data.matrices[data.measure], i, j);
    if (known(tau)) {
      lines.push([fixed(tau), `likeness by features, weighted τ${rangeOf(data.low, data.high, i, j)}${ceilingOf(data.ceiling, i, j)}`]);
    }
    const p = entry(data.p_block, i, j);
    if (known(p) && i !== j) {
      lines.push([pText(p), "that chance ranks the features so alike, corrected for all pairs of layers"]);
    }
    for (const measure of Object.keys(data.matrices)) {
      const value = measure === data.measure ? null : entry(data.matrices[measure], i, j);
      if (known(value)) lines.push(...geometry(measure, value, i, j));
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
      all(".chart.pair").forEach(Charts.draw);
    });
  }

  // The cells of a picture are no marks, which would say what they are themselves.
  function showCell(box, event) {
    if (!data.specs[box.dataset.chart].usermeta.picture) return;
    const cell = Charts.cellAt(box, event), measure = measureOf(box);
    const value = cell && entry(data.matrices[measure], ...cell);
    Charts.tell(event, known(value) ? { a: data.names[cell[0]], b: data.names[cell[1]], [data.labels[measure]]: fixed(value) } : null);
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
        const cell = Charts.cellAt(box, event);
        if (cell) select(...cell);
      });
      box.addEventListener("mousemove", (event) => showCell(box, event));
      box.addEventListener("mouseleave", (event) => Charts.tell(event, null));
      box.addEventListener("keydown", (event) => {
        if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        select(...KEYS[event.key]());
      });
    }
    document.querySelector(".picks").addEventListener("click", ({ target }) => {
      if (target.matches("button")) select(Number(target.dataset.i), Number(target.dataset.j));
    });
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
      Charts.draw(box);
    });
    document.addEventListener("click", ({ target }) => {
      const chip = target.closest("button.chip");
      if (!chip) return;
      focus = focus === chip.dataset.feature ? "" : chip.dataset.feature;
      all("button.chip").forEach((other) => other.setAttribute("aria-pressed", String(other.dataset.feature === focus)));
      all('[data-chart^="profile-"]').forEach(sendSignals);
    });
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

  function show(next) {
    data = next;
    n = data.names.length;
    fillSelects();
    [pair.i, pair.j] = firstPair();
    describePair();
  }

  function start(first) {
    show(first);
    listen();
    new IntersectionObserver(([why]) => document.querySelector(".peek").classList.toggle("here", why.isIntersecting))
      .observe(byId("why"));
    Charts.start({ source, look: data.look, drawn: sendSignals });
    document.documentElement.dataset.ready = "true";
  }

  return { start, show };
})();

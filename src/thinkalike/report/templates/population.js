"use strict";
// Draws the page of a population from DATA: names, distances, map, tree, facts, layers, importance.
const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function mark(parent, kind, attributes, text) {
  const made = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent.appendChild(made);
  return made;
}

function options(select, names, chosen) {
  names.forEach((name, k) => select.add(new Option(name, String(k), false, k === chosen)));
}

function levels(fact) {
  return fact === null ? [] : [...new Set(DATA.facts[fact])].sort();
}

function colour(fact, k) {
  return fact === null ? "var(--accent)" : `var(--feature-${levels(fact).indexOf(DATA.facts[fact][k])})`;
}

function drawMap() {
  const drawing = byId("map-drawing"), size = 640, n = DATA.names.length;
  drawing.replaceChildren();
  drawing.setAttribute("viewBox", `0 0 ${size} ${size}`);
  drawing.setAttribute("width", size);
  drawing.setAttribute("height", size);
  const reach = 1.15 * Math.max(1e-9, ...DATA.map.places.flat().map(Math.abs));
  const at = (v) => size / 2 + (v / reach) * (size / 2);
  const fact = byId("colour").value === "" ? null : byId("colour").value;
  DATA.map.places.forEach(([x, y], k) => {
    const [a, b, angle] = DATA.map.ellipses[k];
    const scale = size / 2 / reach;
    mark(drawing, "ellipse", {
      cx: at(x), cy: at(-y), rx: a * scale, ry: b * scale,
      transform: `rotate(${(-angle * 180) / Math.PI} ${at(x)} ${at(-y)})`,
    });
  });
  DATA.map.places.forEach(([x, y], k) => {
    const point = mark(drawing, "circle", { cx: at(x), cy: at(-y), r: n > 60 ? 4 : 6, tabindex: 0, role: "button" });
    point.style.fill = colour(fact, k);
    if (k === Number(byId("model").value)) point.classList.add("chosen");
    mark(point, "title", {}, DATA.names[k]);
    point.addEventListener("click", () => choose(k));
    point.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(k); });
    const side = at(x) > 0.7 * size ? { x: at(x) - 8, "text-anchor": "end" } : { x: at(x) + 8 };
    if (n <= 60) mark(drawing, "text", { ...side, y: at(-y) + 4 }, DATA.names[k]);
  });
  byId("legend").replaceChildren(...levels(fact).map((level, k) => {
    const made = document.createElement("span");
    made.textContent = `● ${level}  `;
    made.style.color = `var(--feature-${k})`;
    return made;
  }));
}

function drawTree() {
  const drawing = byId("tree-drawing"), n = DATA.names.length, row = 16, left = 220, width = 420;
  const top = Math.max(1e-9, ...DATA.tree.heights.flat());
  drawing.setAttribute("viewBox", `0 0 ${left + width + 30} ${n * row + 10}`);
  drawing.setAttribute("width", left + width + 30);
  drawing.setAttribute("height", n * row + 10);
  const x = (height) => left + (height / top) * width, y = (place) => (place + 0.5) * row;
  DATA.tree.heights.forEach((heights, k) => {
    const path = heights.map((h, c) => `${c ? "L" : "M"}${x(h)},${y(DATA.tree.places[k][c])}`).join("");
    mark(drawing, "path", { d: path });
    const support = DATA.tree.support[k], middle = (DATA.tree.places[k][1] + DATA.tree.places[k][2]) / 2;
    if (support !== null) mark(drawing, "text", { x: x(heights[1]) + 3, y: y(middle) + 3, class: "quiet" }, support.toFixed(2));
  });
  DATA.tree.order.forEach((k, place) => {
    const name = mark(drawing, "text", { x: left - 6, y: y(place) + 4, "text-anchor": "end" }, DATA.names[k]);
    name.addEventListener("click", () => choose(k));
  });
}

function showNearest() {
  const own = Number(byId("model").value);
  const order = DATA.names.map((_, k) => k).filter((k) => k !== own)
    .sort((a, b) => DATA.distances[own][a] - DATA.distances[own][b]).slice(0, 10);
  byId("nearest").replaceChildren(...order.map((k) => {
    const row = document.createElement("tr"), link = document.createElement("a");
    link.href = address(own, k);
    link.textContent = "see this pair";
    [DATA.names[k], DATA.distances[own][k].toFixed(3), link].forEach((cell) => {
      const made = document.createElement("td");
      made.append(cell);
      row.append(made);
    });
    return row;
  }));
}

// τ_w of two profiles (Vigna 2015): ranks by one, ties broken by the other, averaged over both ways.
function tau(x, y) {
  const n = x.length;
  const one = (a, b) => {
    const weight = a.map((_, i) => {
      let above = 0, sharing = 0;
      for (let j = 0; j < n; j++) {
        if (a[j] > a[i] || (a[j] === a[i] && b[j] > b[i])) above++;
        if (a[j] === a[i] && b[j] === b[i]) sharing++;
      }
      let sum = 0;
      for (let r = above; r < above + sharing; r++) sum += 1 / (r + 1);
      return sum / sharing;
    });
    let agree = 0, inA = 0, inB = 0;
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {
      const s = Math.sign(a[i] - a[j]), t = Math.sign(b[i] - b[j]), w = weight[i] + weight[j];
      agree += s * t * w;
      inA += s * s * w;
      inB += t * t * w;
    }
    return agree / Math.sqrt(inA * inB);
  };
  return (one(x, y) + one(y, x)) / 2;
}

function drawPair() {
  const a = Number(byId("first").value), b = Number(byId("second").value), drawing = byId("pair-drawing");
  const rows = DATA.importance[a], columns = DATA.importance[b], size = 24, left = 60, top = 40;
  drawing.replaceChildren();
  drawing.setAttribute("width", left + columns.length * size + 10);
  drawing.setAttribute("height", top + rows.length * size + 10);
  let total = 0, count = 0, best = [-2, 0, 0];
  rows.forEach((x, i) => {
    mark(drawing, "text", { x: left - 6, y: top + i * size + 16, "text-anchor": "end" }, DATA.layers[a][i]);
    columns.forEach((y, j) => {
      const value = tau(x, y);
      if (Number.isFinite(value)) { total += value; count++; }
      if (value > best[0]) best = [value, i, j];
      const cell = mark(drawing, "rect", { x: left + j * size, y: top + i * size, width: size, height: size });
      cell.style.fill = value < 0 ? "var(--caution)" : "var(--accent)";
      cell.style.opacity = Math.abs(value) || 0;
      mark(cell, "title", {}, `${DATA.names[a]}:${DATA.layers[a][i]} and ${DATA.names[b]}:${DATA.layers[b][j]}: ${value.toFixed(2)}`);
    });
  });
  columns.forEach((_, j) => mark(drawing, "text", { x: left + j * size + 12, y: top - 6, "text-anchor": "middle" }, DATA.layers[b][j]));
  const first = (values) => DATA.features[values.indexOf(Math.max(...values))];
  const [value, i, j] = best;
  byId("pair-answer").textContent =
    `Mean τ_w ${(total / count).toFixed(2)} over all pairs of layers. Most alike: ${DATA.names[a]}:${DATA.layers[a][i]} and ` +
    `${DATA.names[b]}:${DATA.layers[b][j]} (${value.toFixed(2)}), which care most about ${first(rows[i])} and ${first(columns[j])}.`;
}

// One canvas instead of a mark for each pair: 200 models have 40,000 of them.
function drawMatrix() {
  const drawing = byId("matrix-drawing"), order = DATA.tree.order, n = order.length;
  const cell = Math.max(2, Math.min(16, Math.floor(640 / n))), pen = drawing.getContext("2d");
  drawing.width = drawing.height = cell * n;
  const top = Math.max(1e-9, ...DATA.distances.map((row) => Math.max(...row)));
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent") || "#246";
  order.forEach((a, i) => order.forEach((b, j) => {
    pen.globalAlpha = Math.max(0, 1 - DATA.distances[a][b] / top);
    pen.fillRect(j * cell, i * cell, cell, cell);
  }));
  const at = (event) => {
    const box = drawing.getBoundingClientRect();
    const place = (v, size) => Math.min(n - 1, Math.max(0, Math.floor((v / size) * n)));
    return [order[place(event.clientY - box.top, box.height)], order[place(event.clientX - box.left, box.width)]];
  };
  drawing.onmousemove = (event) => {
    const [a, b] = at(event);
    byId("matrix-at").textContent = `${DATA.names[a]} and ${DATA.names[b]}: ${DATA.distances[a][b].toFixed(3)}`;
  };
  drawing.onclick = (event) => { location.hash = address(...at(event)); };
}

// A pair has an address of its own, by names, so that it can be kept and sent.
function address(a, b) {
  return `#pair/${encodeURIComponent(DATA.names[a])}/${encodeURIComponent(DATA.names[b])}`;
}

function addressed() {
  const found = /^#pair\/([^/]+)\/([^/]+)$/.exec(location.hash);
  let places = [-1, -1];
  try {
    if (found) places = found.slice(1).map((name) => DATA.names.indexOf(decodeURIComponent(name)));
  } catch { /* no such address */ }
  const known = places.every((k) => k >= 0);
  document.body.classList.toggle("one-pair", known);
  byId("pair-title").textContent = known ? `${DATA.names[places[0]]} and ${DATA.names[places[1]]}` : "A pair";
  if (!known) return;
  ["first", "second"].forEach((id, k) => { byId(id).value = String(places[k]); });
  drawPair();
  scrollTo(0, 0);
}

function choose(k) {
  byId("model").value = String(k);
  showNearest();
  drawMap();
}

byId("colour").add(new Option("nothing", ""));
Object.keys(DATA.facts).forEach((fact) => byId("colour").add(new Option(fact, fact, false, fact === "family" || fact === "architecture")));
options(byId("model"), DATA.names, 0);
options(byId("first"), DATA.names, 0);
options(byId("second"), DATA.names, 1);
byId("colour").addEventListener("change", drawMap);
byId("model").addEventListener("change", () => { showNearest(); drawMap(); });
["first", "second"].forEach((id) => byId(id).addEventListener("change", () => {
  location.hash = address(Number(byId("first").value), Number(byId("second").value));
}));
addEventListener("hashchange", addressed);
drawMap();
drawTree();
drawMatrix();
showNearest();
drawPair();
addressed();
document.documentElement.dataset.drawn = "yes";

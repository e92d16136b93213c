"use strict";
// Draws the page of a population from DATA: names, distances, map, tree, facts, layers, importance.
const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const fixed = (value) => value.toFixed(2).replace(/^-(?=[0.]+$)/, "").replace("-", "−"); // no minus before a rounded 0
const TITLE = document.title, DARK = matchMedia("(prefers-color-scheme: dark)");

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

// Room for a drawing: as wide as its place, up to a limit.
function room(drawing, most) {
  return Math.max(240, Math.min(most, drawing.parentElement.clientWidth));
}

function sized(drawing, width, height) {
  drawing.replaceChildren();
  reaching(drawing, width, height);
}

function reaching(drawing, width, height) {
  drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
  drawing.setAttribute("width", width);
  drawing.setAttribute("height", height);
}

// Colours and what they stand for, in rows below `top`, so that they are part of what is saved; where they end.
function keys(drawing, entries, wide, top) {
  const group = mark(drawing, "g", { class: "keys" });
  let x = 0, y = top;
  entries.forEach(([fill, name]) => {
    const key = mark(group, "rect", { width: 10, height: 10, rx: 5 }), text = mark(group, "text", {}, name);
    const long = 15 + text.getComputedTextLength();
    if (x > 0 && x + long > wide) [x, y] = [0, y + 18];
    key.style.fill = fill;
    [[key, x, y], [text, x + 15, y + 9]].forEach(([one, left, base]) => { one.setAttribute("x", left); one.setAttribute("y", base); });
    x += long + 16;
  });
  return entries.length ? y + 18 : top;
}

// How far the map goes from its middle: to its points with some room, and to the ends of the shades, within reason.
function mapReach() {
  const far = Math.max(1e-9, ...DATA.map.places.flat().map(Math.abs));
  const ends = DATA.map.places.map(([x, y], k) => {
    const [a, b, angle] = DATA.map.ellipses[k], c = Math.abs(Math.cos(angle)), s = Math.abs(Math.sin(angle));
    return Math.max(Math.abs(x) + a * c + b * s, Math.abs(y) + a * s + b * c); // of the box around the shade
  });
  return Math.min(2 * far, Math.max(1.2 * far, 1.02 * Math.max(...ends)));
}

const FEW = 60; // models that all have their names and ellipses
function drawMap() {
  const drawing = byId("map-drawing"), size = room(drawing, 640), n = DATA.names.length;
  sized(drawing, size, size);
  const reach = mapReach();
  const scale = size / 2 / reach, own = Number(byId("model").value);
  const points = DATA.map.places.map(([x, y]) => [size / 2 + x * scale, size / 2 - y * scale]);
  const fact = byId("colour").value === "" ? null : byId("colour").value;
  points.forEach(([x, y], k) => {
    if (n > FEW && k !== own) return;
    const [a, b, angle] = DATA.map.ellipses[k];
    const transform = `rotate(${(-angle * 180) / Math.PI} ${x} ${y})`;
    mark(drawing, "ellipse", { cx: x, cy: y, rx: a * scale, ry: b * scale, transform });
  });
  points.forEach(([x, y], k) => {
    const point = mark(drawing, "circle", { cx: x, cy: y, r: n > FEW ? 4 : 6, tabindex: 0, role: "button" });
    point.style.fill = colour(fact, k);
    if (k === own) point.classList.add("chosen");
    mark(point, "title", {}, DATA.names[k]);
    point.addEventListener("click", () => choose(k));
    point.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(k); });
  });
  names(drawing, points, n > FEW ? [own, ...nearest(own, 5)] : DATA.names.map((_, k) => k), size);
  const bottom = keys(drawing, levels(fact).map((level, k) => [`var(--feature-${k})`, level]), size, size + 8);
  reaching(drawing, size, bottom);
}

// Names beside their points, where they meet no other name and no point; the rest are told on touch.
function names(drawing, points, shown, size) {
  const taken = points.map(([x, y]) => [x - 6, y - 6, x + 6, y + 6]);
  const free = (box) => box[0] >= 0 && box[2] <= size && !taken.some((o) => box[0] < o[2] && o[0] < box[2] && box[1] < o[3] && o[1] < box[3]);
  shown.forEach((k) => {
    const [x, y] = points[k], text = mark(drawing, "text", { x, y }, DATA.names[k]), wide = text.getComputedTextLength();
    const places = [[x + 9, y + 4], [x - 9 - wide, y + 4], [x - wide / 2, y - 10], [x - wide / 2, y + 18]];
    const at = places.find(([left, base]) => free([left, base - 9, left + wide, base + 3]));
    if (!at) return text.remove();
    text.setAttribute("x", at[0]);
    text.setAttribute("y", at[1]);
    taken.push([at[0], at[1] - 9, at[0] + wide, at[1] + 3]);
  });
}

const SURE = 0.5; // of the draws: forks below it have no number
function drawTree() {
  const drawing = byId("tree-drawing"), n = DATA.names.length, row = 17, whole = room(drawing, 640);
  sized(drawing, whole, n * row + 10);
  const labels = DATA.tree.order.map((k) => mark(drawing, "text", { "text-anchor": "end" }, DATA.names[k]));
  const left = Math.min(whole / 2, 12 + Math.max(...labels.map((one) => one.getComputedTextLength())));
  const top = Math.max(1e-9, ...DATA.tree.heights.flat());
  const x = (height) => left + (height / top) * (whole - left - 34), y = (place) => (place + 0.5) * row;
  labels.forEach((label, place) => {
    label.setAttribute("x", left - 6);
    label.setAttribute("y", y(place) + 4);
    label.addEventListener("click", () => choose(DATA.tree.order[place]));
  });
  DATA.tree.heights.forEach((heights, k) => {
    const path = heights.map((h, c) => `${c ? "L" : "M"}${x(h)},${y(DATA.tree.places[k][c])}`).join("");
    mark(drawing, "path", { d: path });
    const support = DATA.tree.support[k], middle = (DATA.tree.places[k][1] + DATA.tree.places[k][2]) / 2;
    if (support !== null && support >= SURE && k < n - 2) // the last fork holds all models
      mark(drawing, "text", { x: x(heights[1]) + 3, y: y(middle) - 2, class: "quiet" }, `${Math.round(100 * support)} %`);
  });
}

function nearest(own, most) {
  return DATA.names.map((_, k) => k).filter((k) => k !== own)
    .sort((a, b) => DATA.distances[own][a] - DATA.distances[own][b]).slice(0, most);
}

function showNearest() {
  const own = Number(byId("model").value);
  byId("nearest").replaceChildren(...nearest(own, 10).map((k) => {
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

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

function euclidean(x, y) {
  return Math.hypot(...x.map((value, k) => value - y[k]));
}

function rSquared(x, y) {
  const mx = mean(x), my = mean(y), sum = (f) => x.reduce((total, _, k) => total + f(x[k] - mx, y[k] - my), 0);
  return sum((a, b) => a * b) ** 2 / (sum((a) => a * a) * sum((_, b) => b * b));
}

// What two layers can be compared by, and how strongly a value is coloured, given the largest of the table.
const MEASURES = {
  "weighted τ": { of: tau, about: "The stronger the colour, the more alike; the other colour is below 0.", depth: (v) => Math.abs(v) },
  "R²": { of: rSquared, about: "The stronger the colour, the more alike.", depth: (v) => v },
  "Euclidean distance": { of: euclidean, about: "The stronger the colour, the nearer.", depth: (v, top) => 1 - v / top },
};

// The pair that the answer names, which the page opens with.
function nearestTwo() {
  let best = [0, 1];
  DATA.distances.forEach((row, a) => row.slice(0, a).forEach((value, b) => {
    if (value < DATA.distances[best[0]][best[1]]) best = [b, a];
  }));
  return best;
}

function chosenPair() {
  return [Number(byId("first").value), Number(byId("second").value)];
}

function drawPair() {
  const [a, b] = chosenPair();
  const taus = DATA.importance[a].map((x) => DATA.importance[b].map((y) => tau(x, y)));
  drawLayers(a, b, taus);
  drawProfiles(a, b);
  sayPair(a, b, taus);
}

function drawLayers(a, b, taus) {
  const drawing = byId("pair-drawing"), measure = MEASURES[byId("measure").value], left = 34, top = 24;
  const values = measure.of === tau ? taus : DATA.importance[a].map((x) => DATA.importance[b].map((y) => measure.of(x, y)));
  const across = DATA.layers[b], size = Math.max(8, Math.min(38, (room(drawing, 560) - left - 10) / across.length));
  sized(drawing, left + across.length * size + 10, top + values.length * size + 10);
  byId("pair-axes").textContent = `Down: layers of ${DATA.names[a]}. Across: layers of ${DATA.names[b]}. ${measure.about}`;
  const deep = DARK.matches ? 0.57 : 0.72; // where numbers in the other colour are read more easily
  const every = Math.ceil(14 / size), largest = Math.max(1e-9, ...values.flat().filter(Number.isFinite)); // ticks that have room
  values.forEach((row, i) => {
    if (i % every === 0) mark(drawing, "text", { x: left - 6, y: top + (i + 0.5) * size + 4, "text-anchor": "end" }, DATA.layers[a][i]);
    row.forEach((value, j) => {
      const depth = Number.isFinite(value) ? Math.max(0, Math.min(1, measure.depth(value, largest))) : 0;
      const x = left + j * size, y = top + i * size, said = Number.isFinite(value) ? fixed(value) : "–";
      const cell = mark(drawing, "rect", { x, y, width: size, height: size });
      cell.style.fill = value < 0 ? "var(--caution)" : "var(--accent)";
      cell.style.opacity = depth;
      mark(cell, "title", {}, `${DATA.names[a]}:${DATA.layers[a][i]} and ${DATA.names[b]}:${DATA.layers[b][j]}: ${said}`);
      if (size < 30) return; // no room for the number
      const text = mark(drawing, "text", { x: x + size / 2, y: y + size / 2 + 4, "text-anchor": "middle", class: "value" }, said);
      if (depth > deep) text.style.fill = "var(--surface)";
    });
  });
  across.forEach((layer, j) => j % every === 0 && mark(drawing, "text", { x: left + (j + 0.5) * size, y: top - 6, "text-anchor": "middle" }, layer));
}

// The share of each feature in what a model cares about. Importances below 0 are chance, and count as none.
function shares(k) {
  const rows = DATA.importance[k].map((row) => row.map((value) => Math.max(0, value)));
  const each = rows.map((row) => { const all = row.reduce((x, y) => x + y, 0); return row.map((value) => (all ? value / all : 0)); });
  return DATA.features.map((_, f) => mean(each.map((row) => row[f])));
}

function drawProfiles(a, b) {
  const drawing = byId("pair-profile"), both = [shares(a), shares(b)], row = 30, whole = room(drawing, 560);
  const order = DATA.features.map((_, f) => f).sort((f, g) => both[0][g] + both[1][g] - both[0][f] - both[1][f]);
  sized(drawing, whole, 0);
  const start = keys(drawing, [a, b].map((k, which) => [`var(--feature-${which})`, DATA.names[k]]), whole, 2) + 6;
  reaching(drawing, whole, start + order.length * row + 6);
  const labels = order.map((f) => mark(drawing, "text", { "text-anchor": "end" }, DATA.features[f]));
  const left = 8 + Math.max(...labels.map((one) => one.getComputedTextLength())), long = whole - left - 44;
  const top = Math.max(1e-9, ...both.flat());
  order.forEach((f, place) => {
    labels[place].setAttribute("x", left - 6);
    labels[place].setAttribute("y", start + place * row + 17);
    both.forEach((values, which) => {
      const width = Math.max(1, (values[f] / top) * long), y = start + place * row + 2 + which * 11;
      mark(drawing, "rect", { x: left, y, width, height: 10 }).style.fill = `var(--feature-${which})`;
      mark(drawing, "text", { x: left + width + 4, y: y + 9 }, `${Math.round(100 * values[f])} %`);
    });
  });
}

function sayPair(a, b, taus) {
  const known = taus.flat().filter(Number.isFinite);
  if (a === b || !known.length) {
    byId("pair-answer").textContent = a === b ? "This is one model: choose another beside it." : "No two of their layers can be compared.";
    return;
  }
  const best = Math.max(...known), i = taus.findIndex((row) => row.includes(best)), j = taus[i].indexOf(best);
  const place = nearest(a, DATA.names.length).indexOf(b) + 1, among = DATA.names.length - 1;
  const first = (values) => DATA.features[values.indexOf(Math.max(...values))];
  const most = [...new Set([first(DATA.importance[a][i]), first(DATA.importance[b][j])])].join(" and ");
  byId("pair-answer").textContent =
    `By nearness to ${DATA.names[a]}, ${DATA.names[b]} is number ${place} of ${among}: mean weighted τ ${fixed(mean(known))} over all pairs of layers. ` +
    `Most alike: layer ${DATA.layers[a][i]} of ${DATA.names[a]} and layer ${DATA.layers[b][j]} of ${DATA.names[b]} (${fixed(best)}), which care most about ${most}.`;
}

// One canvas instead of a mark for each pair: 200 models have 40,000 of them. Few models have their names beside it.
function drawMatrix() {
  const drawing = byId("matrix-drawing"), order = DATA.tree.order, n = order.length, pen = drawing.getContext("2d");
  const style = getComputedStyle(document.documentElement), font = `11px ${style.getPropertyValue("--font")}`, whole = room(drawing, 640);
  pen.font = font;
  const widest = 8 + Math.max(...DATA.names.map((name) => pen.measureText(name).width));
  const left = n <= 40 && widest < whole / 2 ? widest : 0, cell = Math.max(1, Math.min(18, (whole - left) / n)), sharp = devicePixelRatio || 1;
  drawing.style.width = `${left + cell * n}px`;
  drawing.style.height = `${cell * n}px`;
  drawing.width = Math.ceil((left + cell * n) * sharp);
  drawing.height = Math.ceil(cell * n * sharp);
  pen.scale(sharp, sharp);
  const top = Math.max(1e-9, ...DATA.distances.map((row) => Math.max(...row)));
  pen.fillStyle = style.getPropertyValue("--accent") || "#246";
  order.forEach((a, i) => order.forEach((b, j) => {
    pen.globalAlpha = Math.max(0, 1 - DATA.distances[a][b] / top);
    pen.fillRect(left + j * cell, i * cell, cell, cell);
  }));
  pen.globalAlpha = 1;
  Object.assign(pen, { font, fillStyle: style.getPropertyValue("--ink"), textAlign: "right", textBaseline: "middle" });
  if (left) order.forEach((k, i) => pen.fillText(DATA.names[k], left - 6, (i + 0.5) * cell));
  const at = (event) => {
    const box = drawing.getBoundingClientRect(), place = (v) => Math.min(n - 1, Math.max(0, Math.floor(v / cell)));
    return [order[place(event.clientY - box.top)], order[place(event.clientX - box.left - left)]];
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
  document.title = known ? `${DATA.names[places[0]]} and ${DATA.names[places[1]]}` : TITLE;
  if (!known) return drawAll();
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
const NEAREST = nearestTwo();
options(byId("first"), DATA.names, NEAREST[0]);
options(byId("second"), DATA.names, NEAREST[1]);
Object.keys(MEASURES).forEach((name) => byId("measure").add(new Option(name, name)));
byId("measure").addEventListener("change", drawPair);
byId("colour").addEventListener("change", drawMap);
byId("model").addEventListener("change", () => { showNearest(); drawMap(); });
["first", "second"].forEach((id) => byId(id).addEventListener("change", () => {
  location.hash = address(Number(byId("first").value), Number(byId("second").value));
}));
addEventListener("hashchange", addressed);
function drawAll() {
  drawMap();
  drawTree();
  drawMatrix();
  drawPair();
}
let wide = innerWidth;
addEventListener("resize", () => { if (innerWidth !== wide) { wide = innerWidth; drawAll(); } });
DARK.addEventListener("change", drawAll);
matchMedia("print").addEventListener("change", drawMatrix); // on paper a canvas too is in light colours
document.body.classList.toggle("crowded", DATA.names.length > FEW);
showNearest();
addressed();
document.documentElement.dataset.ready = "true";

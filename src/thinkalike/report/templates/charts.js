"use strict";
// Draws charts from their Vega-Lite specifications: each when it comes near the view, large ones on a canvas.
const Charts = (() => {
  const NEAR = "700px 0px"; // of the view: drawn before it is seen
  const MOST_MARKS = 600; // in SVG, where each is a node of the page; a canvas is one node, whatever it shows
  const PICTURE = 1200; // dots of the side of a matrix that is drawn as a picture, at the least
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const views = new Map(); // chart box → Vega view
  const turns = new Map(); // chart box → how often it was drawn
  const near = new Set();
  const all = () => [...document.querySelectorAll(".chart")];
  let source; // chart box → { spec, tables }, in the colours of light; set by `start`
  let look; // { config, dark }: what charts look like, and dark colours by those of light
  let drawn = () => {}; // called with a box once its chart is there
  let unfinished = 0;
  let watch; // finds the boxes that come near
  let mode = dark.matches ? "dark" : "light";

  // A specification is in the colours of light wherever they stand in it, also inside expressions.
  function coloured(value) {
    if (mode === "light") return value;
    return JSON.parse(JSON.stringify(value).replace(/#[0-9a-f]{6}\b/g, (colour) => look.dark[colour] ?? colour));
  }

  function sized(spec, box) {
    const width = Math.floor(box.clientWidth);
    if (box.dataset.fit === "own") return spec;
    if (box.dataset.fit === "cells") {
      // Whole pixels for every cell, or hairlines show between them; the rest is room for the names. Of a matrix that would
      // be much smaller so, all the room: its cells are too many to be more than a picture.
      const n = spec.usermeta.cells, room = width - 44, whole = n * Math.floor(room / n);
      const side = whole < 0.8 * room ? room : whole;
      return { ...spec, width: side, height: side, padding: 2, autosize: { type: "pad" } };
    }
    if (box.dataset.fit === "width") return { ...spec, width, autosize: { type: "fit-x", contains: "padding" } };
    return { ...spec, width, height: height(box), autosize: { type: "fit", contains: "padding" } };
  }

  // Height ÷ width: of the box, or what the chart itself says.
  const ratio = (box) => (box.dataset.ratio === "own" ? source(box).spec.usermeta.ratio : Number(box.dataset.ratio));
  const height = (box) => Math.round(Math.floor(box.clientWidth) * ratio(box));

  // The place of a chart that is not drawn yet, so that nothing jumps when it is.
  function reserve(box) {
    if (box.dataset.ratio) box.style.minHeight = `${height(box)}px`;
    else if (box.dataset.fit === "cells") box.style.minHeight = `${box.clientWidth}px`;
  }

  // Vega writes a role and a label of its own on the element that it draws in: so not on the box, which has better ones.
  function inner(box) {
    if (!box.firstElementChild) {
      const made = document.createElement("div");
      made.setAttribute("aria-hidden", "true");
      box.append(made);
    }
    return box.firstElementChild;
  }

  // One after the other, with a frame between them, so that a page that is scrolled stays in motion.
  const waiting = new Set();
  let busy = false;
  function drawSoon(box) {
    waiting.add(box);
    if (busy) return;
    busy = true;
    requestAnimationFrame(async function next() {
      const [first] = waiting;
      busy = first !== undefined;
      if (!busy) return;
      waiting.delete(first);
      await draw(first);
      setTimeout(next);
    });
  }

  function draw(box) {
    if (!box.clientWidth) return undefined;
    box.dataset.width = box.clientWidth;
    if (!near.has(box)) return reserve(box);
    const { spec: bare, tables } = source(box);
    const spec = coloured(sized(bare, box));
    if (spec.usermeta?.picture) tables[spec.usermeta.picture] = [{ url: picture(tables[spec.usermeta.picture], spec) }];
    const many = !spec.usermeta?.cells && Object.values(tables).some((rows) => rows.length > MOST_MARKS); // cells are few, or a picture
    unfinished += 1;
    const turn = (turns.get(box) ?? 0) + 1;
    turns.set(box, turn);
    const options = {
      actions: false, renderer: many ? "canvas" : "svg", config: coloured(look.config),
      defaultStyle: false, tooltip: (_handler, event, _item, value) => tell(event, value),
    };
    return vegaEmbed(inner(box), { ...spec, datasets: { ...spec.datasets, ...tables } }, options).then(({ view, finalize }) => {
      if (turns.get(box) !== turn) return finalize(); // drawn anew in the meantime
      views.get(box)?.finalize();
      views.set(box, view);
      box.vegaView = view; // for what saves it as a file
      box.style.minHeight = "";
      drawn(box);
    }).finally(() => { unfinished -= 1; });
  }

  // ---- a matrix with many cells, as a picture ------------------------------------------------------------------
  // Cells are painted several dots wide, or a browser that scales the picture would blur them into each other.
  function picture(values, spec) {
    const n = Math.sqrt(values.length), wide = Math.max(1, Math.ceil(PICTURE / n));
    const { domain: [low, high], range } = spec.usermeta.colours;
    const ramp = range.map((colour) => [1, 3, 5].map((k) => parseInt(colour.slice(k, k + 2), 16)));
    const canvas = document.createElement("canvas"), small = document.createElement("canvas");
    [small.width, small.height, canvas.width, canvas.height] = [n, n, n * wide, n * wide];
    const dots = small.getContext("2d").createImageData(n, n);
    values.forEach((value, k) => {
      if (value === null) return; // transparent
      const place = Math.max(0, Math.min(1, (value - low) / (high - low))) * (ramp.length - 1);
      const from = Math.min(Math.floor(place), ramp.length - 2), part = place - from;
      for (let c = 0; c < 3; c += 1) dots.data[4 * k + c] = Math.round(ramp[from][c] * (1 - part) + ramp[from + 1][c] * part);
      dots.data[4 * k + 3] = 255;
    });
    small.getContext("2d").putImageData(dots, 0, 0);
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(small, 0, 0, n * wide, n * wide);
    return canvas.toDataURL();
  }

  // The row and the column of a matrix where an event took place.
  function cellAt(box, event) {
    const view = views.get(box), drawing = box.querySelector("svg, canvas");
    if (!view || !drawing) return null;
    const place = drawing.getBoundingClientRect();
    const [left, top] = view.origin();
    const padding = view.padding();
    const j = Math.floor(view.scale("x").invert(event.clientX - place.left - left - padding.left));
    const i = Math.floor(view.scale("y").invert(event.clientY - place.top - top - padding.top));
    const n = view.scale("x").domain()[1];
    return i >= 0 && i < n && j >= 0 && j < n ? [i, j] : null;
  }

  // ---- what a mark says ----------------------------------------------------------------------------------------
  function tell(event, value) {
    const note = document.getElementById("tooltip");
    note.hidden = value === null || value === undefined || value === "";
    if (note.hidden) return;
    const lines = Object.entries(value).filter(([, text]) => text !== "" && text !== "null");
    note.replaceChildren(...lines.map(([key, text]) => {
      const line = document.createElement("div"), label = document.createElement("span");
      label.textContent = key;
      line.append(label, String(text));
      return line;
    }));
    const box = note.getBoundingClientRect();
    note.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    const below = event.clientY + 16;
    note.style.top = `${below + box.height > innerHeight ? event.clientY - box.height - 10 : below}px`;
  }

  // ---- light and dark, paper, other widths ---------------------------------------------------------------------
  function setMode(next) {
    if (next === mode) return;
    mode = next;
    all().forEach(draw);
  }
  const screenMode = () => (dark.matches ? "dark" : "light");

  // Everything, wherever it stands: for paper.
  function drawAll() {
    all().forEach((box) => {
      if (near.has(box)) return;
      near.add(box);
      draw(box);
    });
  }

  function start(options) {
    ({ source, look, drawn } = options);
    dark.addEventListener("change", () => setMode(screenMode()));
    window.addEventListener("beforeprint", () => {
      if (document.querySelector(".alone")) return; // one chart is printed, which is there
      document.querySelectorAll("details").forEach((part) => { part.open = true; });
      setMode("light");
      drawAll();
    });
    window.addEventListener("afterprint", () => setMode(screenMode()));
    let timer = 0;
    new ResizeObserver(() => {
      clearTimeout(timer);
      timer = setTimeout(() => all().filter((box) => Number(box.dataset.width) !== box.clientWidth).forEach(draw), 120);
    }).observe(document.body);
    watch = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        watch.unobserve(target);
        if (near.has(target)) continue; // drawn already
        near.add(target);
        drawSoon(target);
      }
    }, { rootMargin: NEAR });
    renew();
  }

  // After the page has other charts, or what they show has changed.
  function renew() {
    for (const box of all()) {
      if (near.has(box)) drawSoon(box);
      else {
        reserve(box);
        watch.observe(box);
      }
    }
  }

  return { start, renew, draw, drawAll, cellAt, tell, viewOf: (box) => views.get(box), atWork: () => unfinished + waiting.size > 0 };
})();

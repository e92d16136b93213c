"use strict";
// Draws every figure from its Vega-Lite specification, in the colours of the screen or, on paper, in those of light.
(async () => {
  const specs = JSON.parse(document.getElementById("specs").textContent);
  const darkOf = JSON.parse(document.getElementById("dark-colours").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const options = { actions: false, renderer: "svg", defaultStyle: false };
  const views = new Map(); // figure box → what Vega made of it
  let mode = "";
  let drawing = Promise.resolve();

  // A specification is in the colours of light wherever they stand in it, also inside expressions.
  function coloured(spec) {
    if (mode === "light") return spec;
    return JSON.parse(JSON.stringify(spec).replace(/#[0-9a-f]{6}/g, (colour) => darkOf[colour] ?? colour));
  }

  async function drawAll() {
    for (const box of document.querySelectorAll("[data-figure]")) {
      const drawn = await vegaEmbed(box, coloured(specs[box.dataset.figure]), options);
      views.get(box)?.finalize();
      views.set(box, drawn);
      box.vegaView = drawn.view; // for what saves it as a file
    }
    document.documentElement.dataset.mode = mode;
  }

  function setMode(next) {
    if (next === mode) return drawing;
    mode = next;
    return (drawing = drawing.then(drawAll));
  }
  const screenMode = () => (dark.matches ? "dark" : "light");

  await setMode(screenMode());
  dark.addEventListener("change", () => setMode(screenMode()));
  window.addEventListener("beforeprint", () => setMode("light"));
  window.addEventListener("afterprint", () => setMode(screenMode()));
  document.documentElement.dataset.ready = "true";
})();

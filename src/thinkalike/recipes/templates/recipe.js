"use strict";
// Draws every figure from its Vega-Lite specification.
(async () => {
  const specs = JSON.parse(document.getElementById("specs").textContent);
  const options = { actions: false, renderer: "svg", defaultStyle: false };
  for (const box of document.querySelectorAll("[data-figure]")) {
    await vegaEmbed(box, specs[box.dataset.figure], options);
  }
  document.documentElement.dataset.ready = "true";
})();


// The controls of the page to explore: each change asks the server for a new view, and the charts follow.
const Explore = (() => {
  const byId = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const choices = JSON.parse(byId("choices").textContent);
  const made = (tag, options = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), options);
    element.append(...children);
    return element;
  };
  let last = null; // what ends the request under way
  let timer = 0;

  function question() {
    const layers = Object.fromEntries(all(".system").map((box) =>
      [box.dataset.system, [...box.querySelectorAll("[name=layer]:checked")].map((one) => one.value)]));
    const features = all("[name=feature]:checked").map((one) => one.value);
    const where = byId("where").value ? [byId("where").value, byId("level").value] : null;
    return { layers, features, distance: byId("distance").value, where, quick: byId("quick").checked };
  }

  async function ask() {
    last?.abort();
    const mine = (last = new AbortController()), from = performance.now();
    tell("Working …");
    try {
      const answer = await fetch(`view?${new URLSearchParams({ q: JSON.stringify(question()) })}`, { signal: mine.signal });
      const data = await answer.json();
      if (mine !== last) return;
      if (data.error) return tell(data.error, true);
      show(data);
      tell(`Made in ${((performance.now() - from) / 1000).toFixed(1)} s.`);
    } catch (error) {
      if (error.name !== "AbortError") tell("The server does not answer: is the command still running?", true);
    }
  }

  function tell(text, wrong = false) {
    byId("state").textContent = text;
    byId("state").classList.toggle("wrong", wrong);
    document.documentElement.dataset.state = wrong ? "wrong" : text.startsWith("Working") ? "working" : "shown";
  }

  function show(data) {
    words(data);
    layout(data);
    Report.show(data);
    Charts.renew();
  }

  // Sentences come as markup, in which the server has escaped every name.
  function words(data) {
    if (!data.answer) return; // the first view, which the page was written with
    byId("alike").innerHTML = data.answer[0].html;
    byId("rest").replaceChildren(...data.answer.slice(1, 3).flatMap(({ question, html }) => [made("dt", { textContent: question }), made("dd", { innerHTML: html })]));
    byId("facts").replaceChildren(...data.facts.map((textContent) => made("span", { textContent })));
    byId("cautions").replaceChildren(...data.cautions.map((html) => made("li", { innerHTML: html })));
    document.querySelector(".picks").replaceChildren(...data.picks.map(({ label, i, j }) => {
      const button = made("button", { type: "button", textContent: label });
      Object.assign(button.dataset, { i, j });
      return button;
    }));
  }

  // A chart for each system that is there, and the keys of colours and shapes.
  function layout(data) {
    byId("profile-charts").replaceChildren(...data.systems.map((system, k) => {
      const charts = [["profile", 0.72, "Importance of features"], ["score", 0.36, "Held-out ρ"]].map(([kind, ratio, what]) => {
        const box = made("div", { className: "chart", role: "img", ariaLabel: `${what} over the layers of ${system}.` });
        Object.assign(box.dataset, { chart: `${kind}-${k}`, ratio });
        return box;
      });
      return made("figure", {}, made("figcaption", {}, made("b", { textContent: system })), ...charts);
    }));
    all("#profile-charts .chart").forEach(Downloads.chart);
    byId("features").replaceChildren(...data.features.map((feature, k) => {
      const chip = made("button", { type: "button", className: "chip", ariaPressed: "false" }, made("i"), feature);
      chip.firstChild.style.background = `var(--feature-${data.order.indexOf(feature)}, var(--muted))`;
      chip.dataset.feature = feature;
      return chip;
    }));
    byId("systems").replaceChildren(...data.systems.map((system, k) => {
      const key = made("i", { className: `shape-${(k + Math.floor(k / 6)) % 6}` });
      key.style.background = `var(--system-${k % 6})`;
      return made("span", { className: "chip" }, key, system);
    }));
  }

  function levels() {
    const known = choices.levels[byId("where").value];
    byId("level-label").hidden = !known;
    byId("level").replaceChildren(...(known ?? []).map((level) => new Option(level, level)));
  }

  function boxesOf(system) {
    return [...system.querySelectorAll("[name=layer]")];
  }

  function listen() {
    const controls = byId("controls");
    controls.addEventListener("change", ({ target }) => {
      const system = target.closest(".system");
      if (target.matches(".all")) boxesOf(system).forEach((box) => { box.checked = target.checked; });
      else if (system) system.querySelector(".all").checked = boxesOf(system).some((box) => box.checked);
      if (target === byId("where")) levels();
      clearTimeout(timer);
      timer = setTimeout(ask, 150); // several in a row are one question
    });
    controls.addEventListener("submit", (event) => event.preventDefault());
    controls.addEventListener("reset", () => setTimeout(() => { levels(); ask(); }));
  }

  const first = JSON.parse(byId("data").textContent);
  layout(first);
  Report.start(first);
  listen();
  return { ask };
})();

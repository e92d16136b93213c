"use strict";
// A small button at every chart (SVG, PNG, PDF) and every table (CSV) that saves it as a file; one that shows the rest of a table.
const Downloads = (() => {
  const SHARPNESS = 3; // dots of a PNG for each of the page
  const plain = (text) => text.trim().toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "chart";

  function save(address, name) {
    const link = document.createElement("a");
    link.href = address;
    link.download = name;
    link.click();
  }

  function offer(element, label, choices) {
    const place = document.createElement("span");
    place.className = "save";
    place.append(...Object.entries(choices).map(([kind, work]) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind;
      button.setAttribute("aria-label", `Save ${label} as ${kind}`);
      button.addEventListener("click", work);
      return button;
    }));
    const around = document.createElement("div");
    around.className = "saved";
    element.replaceWith(around);
    around.append(element, place);
  }

  function text(kind, content, name) {
    save(`data:${kind};charset=utf-8,${encodeURIComponent(content)}`, name);
  }

  // Only the browser can write a PDF: the chart is printed alone, on a page of its size, and saved from there.
  function print(svg) {
    const drawing = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    const [width, height] = ["width", "height"].map((side) => Math.ceil(Number(drawing.getAttribute(side))));
    const alone = document.createElement("div"), style = document.createElement("style");
    alone.className = "alone";
    alone.append(document.importNode(drawing, true));
    style.textContent = `@page { size: ${width}px ${height + 1}px; margin: 0 } @media print { body > :not(.alone) { display: none !important } }`;
    document.head.append(style);
    document.body.append(alone);
    addEventListener("afterprint", () => [alone, style].forEach((part) => part.remove()), { once: true });
    window.print();
  }

  function chart(box) {
    const title = box.closest("figure")?.querySelector("figcaption b")?.textContent ?? box.dataset.chart ?? "chart";
    const name = plain(title);
    offer(box, title, {
      SVG: () => box.vegaView.toSVG().then((svg) => text("image/svg+xml", svg, `${name}.svg`)),
      PNG: () => box.vegaView.toImageURL("png", SHARPNESS).then((address) => save(address, `${name}.png`)),
      PDF: () => box.vegaView.toSVG().then(print),
    });
  }
  document.querySelectorAll(".chart, [data-figure]").forEach(chart);

  // A drawing of the page's own, with the looks that the page gives it.
  const LOOKS = ["fill", "stroke", "stroke-width", "opacity", "paint-order", "text-anchor", "font-family", "font-size", "font-weight"];
  const surface = () => getComputedStyle(document.documentElement).getPropertyValue("--surface");
  function standing(drawing) {
    const copy = drawing.cloneNode(true), parts = [drawing, ...drawing.querySelectorAll("*")];
    [copy, ...copy.querySelectorAll("*")].forEach((part, k) => {
      const looks = getComputedStyle(parts[k]);
      part.setAttribute("style", LOOKS.map((look) => `${look}: ${looks.getPropertyValue(look)}`).join("; "));
    });
    copy.style.background = surface();
    return new XMLSerializer().serializeToString(copy);
  }

  async function pixels(drawing) {
    const image = new Image(), canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standing(drawing))}`;
    await image.decode();
    [canvas.width, canvas.height] = [image.width * SHARPNESS, image.height * SHARPNESS];
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    return canvas.toDataURL("image/png");
  }

  for (const drawing of document.querySelectorAll("svg.population, canvas.population")) {
    const title = drawing.getAttribute("aria-label"), name = plain(title);
    const png = (address) => save(address, `${name}.png`);
    offer(drawing, title, drawing.matches("canvas") ? { PNG: () => png(drawing.toDataURL("image/png")) } : {
      SVG: () => text("image/svg+xml", standing(drawing), `${name}.svg`),
      PNG: () => pixels(drawing).then(png),
      PDF: () => print(standing(drawing)),
    });
  }

  // A cell that a spreadsheet would take for a formula is kept from that by a quotation mark.
  const cell = (text) => `"${text.trim().replace(/^[=+@]/, "'$&").replaceAll('"', '""')}"`;
  for (const table of document.querySelectorAll("main table")) {
    const title = table.closest("section, figure")?.querySelector("h2, h3, figcaption")?.textContent ?? "table";
    const rest = () => [...(table.querySelector("template.rest")?.content.children ?? [])]; // rows that are not shown yet
    const csv = () => [...table.rows, ...rest()].map((row) => [...row.cells].map((c) => cell(c.textContent)).join(",")).join("\r\n");
    offer(table.closest(".scroll") ?? table, title, { CSV: () => text("text/csv", "\ufeff" + csv(), `${plain(title)}.csv`) });
  }

  for (const rest of document.querySelectorAll("template.rest")) {
    const more = document.createElement("button");
    more.type = "button";
    more.className = "more";
    more.textContent = `Show all ${rest.dataset.all} rows`;
    more.addEventListener("click", () => {
      rest.replaceWith(rest.content);
      more.remove();
    });
    (rest.closest(".saved") ?? rest.closest("table")).after(more);
  }

  return { chart };
})();

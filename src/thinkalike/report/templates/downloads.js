"use strict";
// A small button at every chart (SVG, PNG) and every table (CSV) that saves it as a file.
(() => {
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

  for (const box of document.querySelectorAll(".chart, [data-figure]")) {
    const title = box.closest("figure")?.querySelector("figcaption b")?.textContent ?? box.dataset.chart ?? "chart";
    const name = plain(title);
    offer(box, title, {
      SVG: () => box.vegaView.toSVG().then((svg) => text("image/svg+xml", svg, `${name}.svg`)),
      PNG: () => box.vegaView.toImageURL("png", SHARPNESS).then((address) => save(address, `${name}.png`)),
    });
  }

  // A cell that a spreadsheet would take for a formula is kept from that by a quotation mark.
  const cell = (text) => `"${text.trim().replace(/^[=+@]/, "'$&").replaceAll('"', '""')}"`;
  for (const table of document.querySelectorAll("main table")) {
    const title = table.closest("section, figure")?.querySelector("h2, h3, figcaption")?.textContent ?? "table";
    const csv = () => [...table.rows].map((row) => [...row.cells].map((c) => cell(c.textContent)).join(",")).join("\r\n");
    offer(table.closest(".scroll") ?? table, title, { CSV: () => text("text/csv", "\ufeff" + csv(), `${plain(title)}.csv`) });
  }
})();

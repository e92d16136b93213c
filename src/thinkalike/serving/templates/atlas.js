"use strict";
// Shows the page of an atlas by the distance that is chosen.
(() => {
  const byId = (id) => document.getElementById(id);
  const about = JSON.parse(byId("distances").textContent);
  function show() {
    byId("about").textContent = about[byId("by").value];
    byId("atlas").src = `atlas?${new URLSearchParams({ by: byId("by").value })}`;
  }
  byId("by").addEventListener("change", show);
  show();
})();

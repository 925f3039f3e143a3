// Enhancements of the product list: selection, keys, lists of values that can be searched, and menus that close.
(() => {
  "use strict";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const isTextField = (element) => element.closest("input:not([type=checkbox]),textarea,select,[contenteditable]");

  // The bar of actions is shown while something is selected.
  const showSelection = () => {
    const bar = document.querySelector("[data-selection]");
    if (!bar) return;
    const boxes = all("#results input[name=products]"), selected = boxes.filter((box) => box.checked).length;
    const isAll = bar.querySelector("[name=all]").checked, text = bar.querySelector("[data-selected-text]");
    bar.hidden = !selected && !isAll;
    text.hidden = isAll;
    text.textContent = text.dataset.selectedText.replace("#", selected);
    const page = document.querySelector("[data-select-page]");
    if (page) { page.checked = selected === boxes.length; page.indeterminate = selected > 0 && selected < boxes.length; }
  };
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-select-page]")) for (const box of all("#results input[name=products]")) box.checked = event.target.checked;
    if (event.target.closest("#results")) showSelection();
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") { for (const menu of all("details.popover[open]")) { menu.open = false; menu.querySelector("summary").focus(); } return; }
    if (event.key !== "x" || isTextField(event.target)) return;
    const row = document.activeElement.closest("tr,li"), box = row && row.querySelector("input[name=products]");
    if (box) { event.preventDefault(); box.checked = !box.checked; showSelection(); }
  });
  document.addEventListener("click", (event) => {
    for (const menu of all("details.popover[open]")) if (!menu.contains(event.target)) menu.open = false;
  });

  // Values of a facet that contain the entered text.
  document.addEventListener("input", (event) => {
    if (!event.target.matches("[data-find-options]")) return;
    event.stopPropagation();
    const facet = event.target.closest(".filter"), text = event.target.value.trim().toLowerCase();
    for (const item of all("li", facet)) item.hidden = !item.textContent.toLowerCase().includes(text);
    for (const more of all(".more", facet)) more.open = text !== "";
  }, true);

  // A facet that the person opened or closed stays so when the facets are loaded again.
  const isOpenByFacet = new Map();
  document.addEventListener("toggle", (event) => {
    if (event.target.matches?.("[data-facet]")) isOpenByFacet.set(event.target.dataset.facet, event.target.open);
  }, true);

  const initialise = (root) => {
    for (const element of all("[data-with-script],[data-find-options]", root)) element.hidden = false;
    for (const element of all("[data-without-script]", root)) element.hidden = true;
    for (const facet of all("[data-facet]", root)) if (isOpenByFacet.has(facet.dataset.facet)) facet.open = isOpenByFacet.get(facet.dataset.facet);
    showSelection();
  };
  document.addEventListener("htmx:load", (event) => initialise(event.detail.elt.parentElement || document));

  // Saved views contain the state in the address.
  document.addEventListener("htmx:afterSettle", () => {
    for (const field of all("[data-list-query]")) field.value = location.search.slice(1);
  });
  for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) document.addEventListener(name, () => {
    for (const notice of all("[data-load-failed]")) notice.hidden = false;
  });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => initialise(document)); else initialise(document);
})();

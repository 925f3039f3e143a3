// Enhancements of sources and matching: submission of a file when it is selected, search in columns, the browser's time zone, and alternative keys.
(() => {
  "use strict";
  document.addEventListener("change", (event) => {
    const form = event.target.closest("[data-auto-upload]");
    if (form && event.target.type === "file" && event.target.files.length) { form.classList.add("sending"); form.requestSubmit(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input,textarea,select,[contenteditable]")) return;
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") return;
    const selector = event.key === "k" ? '[data-key="k"]' : `[data-alternative-key="${CSS.escape(event.key)}"]`;
    if (document.querySelector("[data-list-item]")) return;
    const target = document.querySelector(selector);
    if (target) { event.preventDefault(); target.click(); }
  });
  // Search in the columns of an editor.
  const filterColumns = (input) => {
    const words = input.value.trim().toLocaleLowerCase();
    for (const column of input.closest("[data-filter-list]").querySelectorAll(".editor-column")) {
      const field = column.querySelector("input[list]");
      column.hidden = !`${column.querySelector("summary").textContent} ${field ? field.value : ""}`.toLocaleLowerCase().includes(words);
    }
  };
  const showFilters = () => document.querySelectorAll("[data-filter]").forEach((part) => { part.hidden = false; });
  document.addEventListener("input", (event) => { if (event.target.closest("[data-filter]")) filterColumns(event.target); });
  document.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target.closest("[data-filter]")) event.preventDefault(); });
  document.addEventListener("focusin", (event) => { if (event.target.matches(".editor-column input[list]")) event.target.select(); });
  document.addEventListener("htmx:afterSwap", showFilters);
  showFilters();
})();

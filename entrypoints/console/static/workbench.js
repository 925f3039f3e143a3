// Enhancements of sources and matching: submission of a file when it is selected, and alternative keys.
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
})();

// Enhancements of sources and matching: submit a file once selected, mark pictures that fail to load, alternative keys.
(() => {
  "use strict";
  document.addEventListener("change", (event) => {
    const form = event.target.closest("[data-sent-by-choice]");
    if (form && event.target.type === "file" && event.target.files.length) { form.classList.add("sending"); form.requestSubmit(); }
  });
  const gone = (image) => { const frame = image.closest(".picture"); if (frame) frame.classList.add("gone"); };
  document.addEventListener("error", (event) => { if (event.target.tagName === "IMG") gone(event.target); }, true);
  for (const image of document.querySelectorAll(".picture img")) if (image.complete && !image.naturalWidth) gone(image);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input,textarea,select,[contenteditable]")) return;
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") return;
    const keys = event.key === "k" ? '[data-key="k"]' : `[data-key-also="${CSS.escape(event.key)}"]`;
    if (!document.querySelector("[data-walk]")) { const found = document.querySelector(keys); if (found) { event.preventDefault(); found.click(); } }
  });
})();

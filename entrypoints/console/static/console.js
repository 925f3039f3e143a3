// Enhancements of the console; every page also works without scripts.
(() => {
  "use strict";
  const texts = document.currentScript.dataset;
  const announce = (text) => { const status = document.getElementById("live"); if (status) status.textContent = text; };

  // htmx sends the session's CSRF token with every request that has side effects.
  document.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.verb !== "get") event.detail.headers["X-Csrf"] = document.body.dataset.csrf;
  });
  // Reload the page if the session has ended, and announce other failures.
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status === 401 || event.detail.xhr.status === 403) { location.reload(); return; }
    announce(texts.failed);
  });

  // Buttons that copy their data or the preceding element, and confirmations of irreversible actions.
  const showCopyButtons = (root) => { for (const button of root.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard; };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.dataset.copy || button.previousElementSibling.textContent);
    button.classList.add("done");
    announce(texts.copied);
    setTimeout(() => button.classList.remove("done"), 1500);
  });
  document.addEventListener("submit", (event) => {
    const question = event.target.dataset.confirm;
    if (question && !window.confirm(question)) event.preventDefault();
  });

  // Fields that are set to the time zone of the browser, if they accept it.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const field of document.querySelectorAll("[data-detect-zone]")) if (!field.options || [...field.options].some((option) => option.value === zone)) field.value = zone;

  // Keys: Ctrl K opens the search over everything, / focuses the search of the page, ? lists the keys, data-key="x" clicks an element, j and k move through [data-list-item].
  const isTextField = (element) => element.closest("input,textarea,select,[contenteditable]");
  const moveFocus = (step) => {
    const items = [...document.querySelectorAll("[data-list-item]")];
    if (!items.length) return;
    const index = items.indexOf(document.activeElement.closest("[data-list-item]"));
    items[Math.max(0, Math.min(items.length - 1, index + step))].focus();
  };
  const palette = document.getElementById("palette");
  const openPalette = (event) => {
    if (!palette) return;
    event.preventDefault();
    if (!palette.open) palette.showModal();
    const field = palette.querySelector("input");
    field.select();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  document.querySelector(".search-toggle")?.addEventListener("click", openPalette);
  palette?.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
  palette?.addEventListener("keydown", (event) => {
    const items = [...palette.querySelectorAll("[data-list-item]")];
    if (event.key === "Enter" && event.target.matches("input") && items.length) { event.preventDefault(); items[0].click(); }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    const index = items.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
    (items[Math.min(index, items.length - 1)] || palette.querySelector("input")).focus();
  });
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { openPalette(event); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || isTextField(event.target)) return;
    if (event.key === "/") {
      const field = document.querySelector("main [type=search]");
      if (field) { event.preventDefault(); field.focus(); field.select(); }
    } else if (event.key === "j") moveFocus(1);
    else if (event.key === "k") moveFocus(-1);
    else if (/^[a-z?]$/i.test(event.key)) {
      const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
      if (target) { event.preventDefault(); target.click(); }
    }
  });

  // Live updates: each event `show` replaces the contents of <div data-events="/console/…">; `end` closes the stream.
  const subscribe = (element) => {
    const source = new EventSource(element.dataset.events);
    source.addEventListener("show", (event) => { element.innerHTML = event.data; showCopyButtons(element); });
    source.addEventListener("end", (event) => { source.close(); if (event.data === "reload") location.reload(); });
    window.addEventListener("pagehide", () => source.close());
  };

  // Files dropped on the frame of a file field.
  const acceptDrops = (frame) => {
    const input = frame.querySelector("input[type=file]");
    frame.addEventListener("dragover", (event) => { event.preventDefault(); frame.classList.add("drag-over"); });
    frame.addEventListener("dragleave", () => frame.classList.remove("drag-over"));
    frame.addEventListener("drop", (event) => {
      event.preventDefault();
      frame.classList.remove("drag-over");
      if (event.dataTransfer.files.length) { input.files = event.dataTransfer.files; input.dispatchEvent(new Event("change", { bubbles: true })); }
    });
  };

  // An image that fails to load and its frame, if any, get the class `failed`.
  const markFailed = (image) => { for (const element of [image, image.closest(".image-frame")]) if (element) element.classList.add("failed"); };
  const checkImage = (image) => { if (image.complete && !image.naturalWidth) markFailed(image); };
  document.addEventListener("error", (event) => { if (event.target.tagName === "IMG") markFailed(event.target); }, true);

  // Fields that submit their form when they change: <select data-auto-submit>.
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-auto-submit]")) event.target.form.requestSubmit();
  });

  const initialise = () => {
    showCopyButtons(document);
    document.querySelectorAll("img:not([loading=lazy]), .image-frame img").forEach(checkImage);
    document.querySelectorAll("[data-events]").forEach(subscribe);
    document.querySelectorAll("[data-drop]").forEach(acceptDrops);
    document.querySelectorAll("[data-without-script]").forEach((element) => { element.hidden = true; });
  };
  document.addEventListener("htmx:afterSwap", (event) => showCopyButtons(event.detail.target));
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", initialise); else initialise();
})();

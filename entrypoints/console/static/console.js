// Enhancements of the console; every page also works without scripts.
(() => {
  "use strict";
  const texts = document.currentScript.dataset;
  const live = (text) => { const place = document.getElementById("live"); if (place) place.textContent = text; };

  // htmx sends the session's CSRF token with every request that has side effects.
  document.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.verb !== "get") event.detail.headers["X-Csrf"] = document.body.dataset.csrf;
  });
  // Reload the page if the session has ended, and announce other failures.
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status === 401 || event.detail.xhr.status === 403) { location.reload(); return; }
    live(texts.failed);
  });

  // Buttons that copy their data or the preceding element, and confirmations of irreversible actions.
  const prepare = (root) => { for (const button of root.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard; };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.dataset.copy || button.previousElementSibling.textContent);
    button.classList.add("done");
    live(texts.copied);
    setTimeout(() => button.classList.remove("done"), 1500);
  });
  document.addEventListener("submit", (event) => {
    const question = event.target.dataset.confirm;
    if (question && !window.confirm(question)) event.preventDefault();
  });

  // Keys: / focuses the search, ? lists the keys, data-key="x" clicks an element, j and k move through [data-walk].
  const typing = (element) => element.closest("input,textarea,select,[contenteditable]");
  const walk = (step) => {
    const all = [...document.querySelectorAll("[data-walk]")];
    if (!all.length) return;
    const at = all.indexOf(document.activeElement.closest("[data-walk]"));
    all[Math.max(0, Math.min(all.length - 1, at + step))].focus();
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "/") {
      const field = document.querySelector("main [type=search]");
      if (field) { event.preventDefault(); field.focus(); field.select(); }
    } else if (event.key === "j") walk(1);
    else if (event.key === "k") walk(-1);
    else if (/^[a-z?]$/i.test(event.key)) {
      const found = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
      if (found) { event.preventDefault(); found.click(); }
    }
  });

  // Live updates: each event `show` replaces the contents of <div data-events="/console/…">; `end` closes the stream.
  const follow = (place) => {
    const source = new EventSource(place.dataset.events);
    source.addEventListener("show", (event) => { place.innerHTML = event.data; prepare(place); });
    source.addEventListener("end", (event) => { source.close(); if (event.data === "reload") location.reload(); });
    window.addEventListener("pagehide", () => source.close());
  };

  // Files dropped on the frame of a file field.
  const droppable = (frame) => {
    const input = frame.querySelector("input[type=file]");
    frame.addEventListener("dragover", (event) => { event.preventDefault(); frame.classList.add("over"); });
    frame.addEventListener("dragleave", () => frame.classList.remove("over"));
    frame.addEventListener("drop", (event) => {
      event.preventDefault();
      frame.classList.remove("over");
      if (event.dataTransfer.files.length) { input.files = event.dataTransfer.files; input.dispatchEvent(new Event("change", { bubbles: true })); }
    });
  };

  // Pictures that fail to load show the icon beneath.
  const check = (picture) => { if (picture.complete && !picture.naturalWidth) picture.classList.add("missing"); };
  document.addEventListener("error", (event) => { if (event.target.tagName === "IMG") event.target.classList.add("missing"); }, true);

  // Fields that submit their form when they change: <select data-sends>.
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-sends]")) event.target.form.requestSubmit();
  });

  const begin = () => {
    prepare(document);
    document.querySelectorAll("img:not([loading=lazy])").forEach(check);
    document.querySelectorAll("[data-events]").forEach(follow);
    document.querySelectorAll("[data-drop]").forEach(droppable);
    document.querySelectorAll("[data-without-script]").forEach((element) => { element.hidden = true; });
  };
  document.addEventListener("htmx:afterSwap", (event) => prepare(event.detail.target));
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin); else begin();
})();

(function () {
  "use strict";

  const form = document.querySelector("form.search");
  const box = form.querySelector("input");
  /** Where searches are answered: the script has no address of its own. */
  const searchPage = form.getAttribute("action");
  const typingPause = 120; // milliseconds without a key, after which is searched

  /** Links to operations began with /docs# when the reference was one page; those that people kept still lead there. */
  function redirectOldAddress() {
    const operation = /^#(([a-z_]+)\.[a-z_]+)$/.exec(location.hash);
    if (operation && location.pathname === "/docs") location.replace("/docs/reference/" + operation[2] + "#" + operation[1]);
  }

  /** What was kept, or null. Browsers that keep nothing for a site throw: then the choice is gone with the page. */
  function kept(name) {
    try {
      return localStorage.getItem(name);
    } catch {
      return null;
    }
  }

  function keep(name, value) {
    try {
      localStorage.setItem(name, value);
    } catch {
      // nothing is kept then
    }
  }

  /** Buttons that copy code are shown where copying is possible. */
  function setUpCopying() {
    if (!navigator.clipboard) return;
    for (const button of document.querySelectorAll(".copy button")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(button.parentNode.querySelector("code").textContent);
        button.textContent = "Copied";
        setTimeout(() => (button.textContent = "Copy"), 1500);
      });
    }
  }

  /** The keyboard stops at blocks that can be scrolled, and at no others. */
  function markScrollable() {
    for (const block of document.querySelectorAll("pre[role], .scroll")) {
      if (block.scrollWidth > block.clientWidth + 1) block.setAttribute("tabindex", "0");
      else block.removeAttribute("tabindex");
    }
  }

  /** Every sample shows the language that was chosen last, on whichever page. */
  function setUpLanguages() {
    const choices = document.querySelectorAll(".tabs input");
    function show(language) {
      for (const choice of choices) if (choice.value === language) choice.checked = true;
      markScrollable();
    }
    for (const choice of choices) {
      choice.addEventListener("change", () => {
        keep("language", choice.value);
        show(choice.value);
      });
    }
    show(kept("language"));
  }

  /** Results come while one types: below the field, or in place of those on the page of searches. */
  function setUpSearch() {
    const shown = document.querySelector("main #results");
    let results = shown; // where links are that arrow keys go through
    let panel = null;
    let timer = 0;

    function close() {
      if (panel) panel.remove();
      panel = null;
    }

    function show(html) {
      const found = new DOMParser().parseFromString(html, "text/html").getElementById("results");
      if (shown) {
        results.replaceWith(found);
        results = found;
        return;
      }
      close();
      found.id = "live";
      panel = document.createElement("div");
      panel.className = "panel-results";
      panel.append(found);
      form.append(panel);
    }

    async function search(query) {
      try {
        const answer = await fetch(searchPage + "?q=" + encodeURIComponent(query));
        const html = await answer.text();
        if (box.value.trim() === query) show(html); // else more was typed meanwhile
      } catch {
        // the form still works without this
      }
    }

    function move(event) {
      const links = Array.from((panel || results || form).querySelectorAll("a"));
      if (!links.length) return;
      const next = links.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
      event.preventDefault();
      if (next < 0) box.focus();
      else links[Math.min(next, links.length - 1)].focus();
    }

    box.addEventListener("input", () => {
      clearTimeout(timer);
      const query = box.value.trim();
      if (query) timer = setTimeout(search, typingPause, query);
      else close();
    });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        if (panel) event.preventDefault(); // else the field is emptied, as usual
        close();
        box.focus();
      } else if (event.key === "ArrowDown" || event.key === "ArrowUp") move(event);
    });
    document.addEventListener("click", (event) => {
      if (!form.contains(event.target)) close();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || document.activeElement.tagName === "INPUT") return;
      event.preventDefault();
      box.focus();
    });
  }

  redirectOldAddress();
  setUpSearch();
  setUpCopying();
  setUpLanguages();
  addEventListener("resize", markScrollable);
  document.addEventListener("toggle", markScrollable, true); // what is unfolded may be wide; toggle does not bubble
})();

(function () {
  "use strict";

  // links to operations began with /docs# when the reference was one page
  const operation = /^#(([a-z_]+)\.[a-z_]+)$/.exec(location.hash);
  if (operation && location.pathname === "/docs/") location.replace("/docs/reference/" + operation[2] + "#" + operation[1]);

  /** Makes only scrollable blocks keyboard-focusable. */
  function markScrollable() {
    for (const block of document.querySelectorAll("pre, .table-wrapper")) {
      if (block.scrollWidth > block.clientWidth + 1) block.setAttribute("tabindex", "0");
      else block.removeAttribute("tabindex");
    }
  }

  document.addEventListener("DOMContentLoaded", markScrollable);
  addEventListener("resize", markScrollable);
  document.addEventListener("change", markScrollable); // a tab was switched
  document.addEventListener("toggle", markScrollable, true); // unfolded content may be wide; toggle does not bubble
})();

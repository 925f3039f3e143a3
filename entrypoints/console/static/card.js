// Card form: load Stripe.js, show its Payment Element in the theme of the page, and confirm the payment or the card.
(() => {
  "use strict";
  const unavailable = document.currentScript.dataset.unavailable;
  const form = document.querySelector("[data-card-form]"), alert = document.querySelector("[data-card-error]");
  const button = form.querySelector("button"), { key, secret, kind, target } = form.dataset;
  const showError = (text) => {
    alert.textContent = text;
    alert.hidden = false;
    button.disabled = false;
  };

  const show = () => {
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
    const variables = { colorPrimary: colour("--accent"), colorBackground: colour("--paper"), colorText: colour("--ink"), colorDanger: colour("--bad"), borderRadius: "6px" };
    const stripe = window.Stripe(key, { locale: document.documentElement.lang });
    const elements = stripe.elements({ clientSecret: secret, appearance: { variables } });
    const fields = elements.create("payment");
    fields.on("ready", () => { button.disabled = false; });
    fields.on("loaderror", () => showError(unavailable));
    form.hidden = false;
    fields.mount(form.querySelector("[data-card-fields]"));

    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      alert.hidden = true;
      const options = { elements, redirect: "if_required", confirmParams: { return_url: new URL(target, location.href).href } };
      const { error } = await (kind === "payment" ? stripe.confirmPayment(options) : stripe.confirmSetup(options));
      if (error) showError(error.message || unavailable);
      else location.assign(target);
    });
  };

  const script = document.createElement("script");
  script.src = "https://js.stripe.com/v3/";
  script.onload = show;
  script.onerror = () => showError(unavailable);
  document.head.append(script);
})();

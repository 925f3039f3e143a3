// Card form: load Stripe.js, show its Payment Element in the theme of the page, and confirm the payment or the card.
(() => {
  "use strict";
  const { unavailable, failed } = document.currentScript.dataset;
  const form = document.querySelector("[data-card-form]"), alert = document.querySelector("[data-card-error]");
  const button = form.querySelector("button"), { key, secret, kind, target } = form.dataset;
  const showError = (text) => {
    alert.textContent = text;
    alert.hidden = false;
  };
  const showUnavailable = () => {
    form.hidden = true;
    showError(unavailable);
  };

  const show = () => {
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
    const variables = { colorPrimary: colour("--accent"), colorBackground: colour("--paper"), colorText: colour("--ink"), colorDanger: colour("--bad"), borderRadius: "6px" };
    const stripe = window.Stripe(key, { locale: document.documentElement.lang });
    const elements = stripe.elements({ clientSecret: secret, appearance: { variables } });
    // Permissions-Policy and Content-Security-Policy of the page permit cards only.
    const fields = elements.create("payment", { wallets: { applePay: "never", googlePay: "never", link: "never" } });
    fields.on("ready", () => { button.disabled = false; });
    fields.on("loaderror", showUnavailable);
    form.hidden = false;
    fields.mount(form.querySelector("[data-card-fields]"));

    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      alert.hidden = true;
      const options = { elements, redirect: "if_required", confirmParams: { return_url: new URL(target, location.href).href } };
      const { error } = await (kind === "payment" ? stripe.confirmPayment(options) : stripe.confirmSetup(options));
      // an earlier confirmation has succeeded
      if (!error || /^(payment|setup)_intent_unexpected_state$/.test(error.code)) return location.assign(target);
      // messages of other errors are for developers
      showError(["card_error", "validation_error"].includes(error.type) && error.message || failed);
      button.disabled = false;
    });
  };

  const script = document.createElement("script");
  script.src = "https://js.stripe.com/dahlia/stripe.js";  // of the API's version
  script.onload = show;
  script.onerror = showUnavailable;
  document.head.append(script);
})();

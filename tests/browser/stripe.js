// Stand-in for Stripe.js that accepts only calls as docs.stripe.com/js describes them. Its frames and requests use the same hosts.
(() => {
  "use strict";
  const require = (condition, text) => { if (!condition) throw new Error(`IntegrationError: ${text}`); };
  const permit = (options, ...names) => Object.keys(options).forEach((name) => require(names.includes(name), `unknown option ${name}`));
  const events = ["ready", "loaderror", "loaderstart", "change", "focus", "blur", "escape"];

  const createPaymentElement = () => {
    const handlers = {};
    const addFrame = (place, src) => place.append(Object.assign(document.createElement("iframe"), { src, title: "Card", hidden: true }));
    return {
      on(event, handler) {
        require(events.includes(event) && typeof handler === "function", `on(${event})`);
        handlers[event] = handler;
      },
      mount(place) {
        require(place instanceof Element && place.isConnected && !place.childNodes.length, "mount() needs an empty element");
        const label = Object.assign(document.createElement("label"), { textContent: "Card number" });
        label.append(Object.assign(document.createElement("input"), { inputMode: "numeric" }));
        place.append(label);
        addFrame(place, "https://js.stripe.com/v3/elements-inner-payment.html");
        addFrame(place, "https://one.js.stripe.com/frame.html");
        addFrame(document.body, "https://hooks.stripe.com/3d_secure");
        setTimeout(() => window.StripeFails ? handlers.loaderror({ elementType: "payment", error: { type: "api_error" } }) : handlers.ready({ elementType: "payment" }));
      },
    };
  };

  window.Stripe = (key, settings = {}) => {
    require(/^pk_/.test(key), "publishable key");
    permit(settings, "apiVersion", "locale", "stripeAccount");
    const known = new Map();
    const confirm = (kind) => async (options) => {
      permit(options, "elements", "clientSecret", "confirmParams", "redirect");
      const group = known.get(options.elements);
      require(group && group.mounted, "elements with a mounted Payment Element");
      require(["always", "if_required"].includes(options.redirect), "redirect");
      require(/^https?:/.test(new URL(options.confirmParams.return_url).protocol), "return_url");
      require((kind === "setup") === group.secret.startsWith("seti_"), `the secret is not for confirm ${kind}`);
      const response = await fetch(`https://api.stripe.com/v1/${kind}/${group.secret}/confirm`, { method: "POST" });
      const error = await response.json();
      return error ? { error } : { [`${kind}Intent`]: { status: "succeeded" } };
    };
    return {
      elements(options) {
        permit(options, "clientSecret", "appearance", "fonts", "loader", "locale");
        require(/_secret/.test(options.clientSecret), "clientSecret");
        permit(options.appearance, "theme", "variables", "rules", "labels", "disableAnimations");
        for (const [name, value] of Object.entries(options.appearance.variables)) require(value && CSS.supports("color", value) === name.startsWith("color"), `variable ${name}: ${value}`);
        const group = { secret: options.clientSecret, mounted: false };
        const made = {
          create(type, given = {}) {
            require(type === "payment", `Element ${type}`);
            permit(given, "layout", "defaultValues", "business", "paymentMethodOrder", "fields", "readOnly", "terms", "wallets");
            permit(given.wallets || {}, "applePay", "googlePay", "link");
            const element = createPaymentElement(), mount = element.mount;
            element.mount = (place) => { mount(place); group.mounted = true; };
            return element;
          },
        };
        known.set(made, group);
        return made;
      },
      confirmPayment: confirm("payment"),
      confirmSetup: confirm("setup"),
    };
  };
})();

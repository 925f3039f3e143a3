// Passkeys: pass the server's options to the browser and submit its response. The forms stay hidden without WebAuthn.
(() => {
  "use strict";
  // Passkeys need a host name; browsers refuse them for IP addresses.
  if (!window.PublicKeyCredential || !navigator.credentials || /^[\d.]+$|:/.test(location.hostname)) return;
  const texts = document.currentScript.dataset;
  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));
  const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const listed = (known) => (known || []).map((one) => ({ ...one, id: bytes(one.id) }));
  const challenged = (asked) => ({ ...asked, challenge: bytes(asked.challenge) });

  const create = async (asked) => {
    const publicKey = { ...challenged(asked), user: { ...asked.user, id: bytes(asked.user.id) }, excludeCredentials: listed(asked.excludeCredentials) };
    const made = await navigator.credentials.create({ publicKey });
    return [made, { clientDataJSON: text(made.response.clientDataJSON), attestationObject: text(made.response.attestationObject) }];
  };
  const get = async (asked) => {
    const publicKey = { ...challenged(asked), allowCredentials: listed(asked.allowCredentials) };
    const made = await navigator.credentials.get({ publicKey });
    const { clientDataJSON, authenticatorData, signature, userHandle } = made.response;
    const told = { clientDataJSON: text(clientDataJSON), authenticatorData: text(authenticatorData), signature: text(signature) };
    return [made, userHandle ? { ...told, userHandle: text(userHandle) } : told];
  };

  const run = async (form) => {
    const answer = await fetch(form.dataset.options, {
      method: "POST", headers: { "X-Csrf": form.elements.csrf.value, "Content-Type": "application/x-www-form-urlencoded" },
    });
    if (!answer.ok) throw new Error(`options: ${answer.status}`);
    const asked = await answer.json();
    const [made, response] = await (form.dataset.passkey === "create" ? create : get)(asked);
    form.elements.challenge.value = asked.challenge;
    form.elements.answer.value = JSON.stringify({ id: made.id, rawId: text(made.rawId), type: made.type, response, clientExtensionResults: {} });
    form.submit();
  };

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const button = form.querySelector("button"), told = form.querySelector("[role=alert]");
      button.disabled = true;
      told.hidden = true;
      run(form).catch((error) => {
        told.textContent = error.name === "InvalidStateError" ? texts.exists : texts.failed;
        told.hidden = false;
      }).finally(() => { button.disabled = false; });
    });
  }
})();

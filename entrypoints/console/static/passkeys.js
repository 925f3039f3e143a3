// Passkeys: pass the server's options to the browser and submit its response. The forms stay hidden without WebAuthn.
(() => {
  "use strict";
  // Passkeys need a host name; browsers refuse them for IP addresses.
  if (!window.PublicKeyCredential || !navigator.credentials || /^[\d.]+$|:/.test(location.hostname)) return;
  const texts = document.currentScript.dataset;
  const decodeBase64Url = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));
  const encodeBase64Url = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const decodeIds = (credentials) => (credentials || []).map((credential) => ({ ...credential, id: decodeBase64Url(credential.id) }));
  const decodeChallenge = (options) => ({ ...options, challenge: decodeBase64Url(options.challenge) });

  const create = async (options) => {
    const publicKey = { ...decodeChallenge(options), user: { ...options.user, id: decodeBase64Url(options.user.id) }, excludeCredentials: decodeIds(options.excludeCredentials) };
    const credential = await navigator.credentials.create({ publicKey });
    return [credential, { clientDataJSON: encodeBase64Url(credential.response.clientDataJSON), attestationObject: encodeBase64Url(credential.response.attestationObject) }];
  };
  const get = async (options) => {
    const publicKey = { ...decodeChallenge(options), allowCredentials: decodeIds(options.allowCredentials) };
    const credential = await navigator.credentials.get({ publicKey });
    const { clientDataJSON, authenticatorData, signature, userHandle } = credential.response;
    const assertion = { clientDataJSON: encodeBase64Url(clientDataJSON), authenticatorData: encodeBase64Url(authenticatorData), signature: encodeBase64Url(signature) };
    return [credential, userHandle ? { ...assertion, userHandle: encodeBase64Url(userHandle) } : assertion];
  };

  const run = async (form) => {
    const reply = await fetch(form.dataset.options, {
      method: "POST", headers: { "X-Csrf": form.elements.csrf.value, "Content-Type": "application/x-www-form-urlencoded" },
    });
    if (!reply.ok) throw new Error(`options: ${reply.status}`);
    const options = await reply.json();
    const [credential, response] = await (form.dataset.passkey === "create" ? create : get)(options);
    form.elements.challenge.value = options.challenge;
    form.elements.credential.value = JSON.stringify({ id: credential.id, rawId: encodeBase64Url(credential.rawId), type: credential.type, response, clientExtensionResults: {} });
    form.submit();
  };

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const button = form.querySelector("button"), alert = form.querySelector("[role=alert]");
      button.disabled = true;
      alert.hidden = true;
      run(form).catch((error) => {
        alert.textContent = error.name === "InvalidStateError" ? texts.exists : texts.failed;
        alert.hidden = false;
      }).finally(() => { button.disabled = false; });
    });
  }
})();

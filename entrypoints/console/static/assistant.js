// The assistant's side panel: opens and closes it, sends messages and decisions, and shows answers as plain text while they arrive.
(() => {
  "use strict";
  const panel = document.getElementById("assistant"), toggle = document.querySelector(".assistant-toggle");
  if (!panel || !toggle) return;
  const BASE = "/console/assistant", KEY = "joinery-assistant", RETRY_SECONDS = [1, 2, 4, 8];
  const phone = matchMedia("(max-width:44rem)");
  const find = (selector) => panel.querySelector(selector);
  const create = (tag, className, text = "") => {
    const element = document.createElement(tag);
    element.className = className;
    element.textContent = text;
    return element;
  };
  const pause = (seconds) => new Promise((resolve) => { setTimeout(resolve, seconds * 1000); });
  let texts = {}, toolTitles = {}, isRunning = false;

  // State of this tab: whether the panel is open, the conversation, and a turn that has not ended, with its key and body.
  const emptyState = { owner: panel.dataset.owner, open: false, conversation: null, turn: null };
  const readState = () => {
    try { return JSON.parse(sessionStorage.getItem(KEY)); } catch { return null; }
  };
  const stored = readState();
  const state = stored?.owner === emptyState.owner ? stored : emptyState;
  const save = (changes) => {
    Object.assign(state, changes);
    try { sessionStorage.setItem(KEY, JSON.stringify(state)); } catch { /* without storage, the panel starts anew on each page */ }
  };

  const request = async (path, fields) => {
    const headers = { "HX-Request": "true", "HX-Target": "assistant_problem", "X-Csrf": document.body.dataset.csrf };
    const response = await fetch(BASE + path, fields ? { method: "POST", headers, body: new URLSearchParams(fields) } : { headers });
    const redirect = response.headers.get("hx-redirect");
    if (redirect) location.assign(redirect);
    if (redirect || !response.ok) {
      const error = new Error("refused");
      error.isRefused = response.headers.has("request-id");
      error.status = response.status;
      error.html = error.isRefused ? await response.text() : "";
      throw error;
    }
    return response;
  };

  // Complete sentences are announced to screen readers, instead of every token.
  let unannounced = "";
  const announce = (text, isEnd = true) => {
    unannounced += text;
    const sentence = isEnd ? unannounced : (/^[\s\S]*[.!?:](?=\s)/.exec(unannounced) || [""])[0];
    unannounced = unannounced.slice(sentence.length);
    if (!sentence.trim()) return;
    const log = document.getElementById("assistant-announcements");
    log.append(create("p", "", sentence.trim()));
    if (log.childElementCount > 40) log.firstElementChild.remove();
  };

  const clearProblem = () => find("#assistant_problem").replaceChildren();
  const showProblem = (code, detail) => {
    const notice = find("template[data-error]").content.cloneNode(true);
    notice.querySelector("p").textContent = detail;
    const remedy = find(`template[data-remedy="${CSS.escape(code)}"]`);
    if (remedy) notice.querySelector("p").after(remedy.content.cloneNode(true));
    find("#assistant_problem").replaceChildren(notice);
  };
  const showError = (error) => {
    if (error.html) find("#assistant_problem").innerHTML = error.html;  // written by the console's templates
    else showProblem("", error.isStored ? texts.disconnected : texts.unexpected);
  };

  // Views of the panel's body.
  const body = () => document.getElementById("conversation");
  const isAtEnd = () => body().scrollHeight - body().scrollTop - body().clientHeight < 80;
  const scrollToEnd = () => { body().scrollTop = body().scrollHeight; };
  const showStart = () => {
    save({ conversation: null, turn: null });
    body().replaceChildren(find("template[data-start]").content.cloneNode(true));
  };
  const showConversation = async (id) => {
    try {
      const html = await (await request(`/conversations/${id}`)).text();
      if (id !== state.conversation) return;
      body().innerHTML = html;
      scrollToEnd();
      if (find("[data-approval]")) announce(texts.waiting);
    } catch (error) {
      if (error.status !== 404) throw error;
      showStart();
    }
  };
  const list = () => {
    if (!find(".assistant-messages")) body().replaceChildren(create("ol", "assistant-messages"));
    return find(".assistant-messages");
  };
  const addMessage = (role, name) => {
    const message = create("li", `assistant-message from-${role}`);
    message.append(create("span", "hidden", `${name}: `));
    list().append(message);
    return message;
  };
  const addUserMessage = (message) => {
    const element = addMessage("user", texts.you);
    element.dataset.message = message.id;
    element.append(create("p", "assistant-text", message.text));
  };

  // An answer while it arrives: frames of the UI message stream of the AI SDK. All texts are set as text, never as HTML.
  const createAnswer = () => {
    const message = addMessage("assistant", texts.assistant), parts = new Map();
    const progress = create("p", "assistant-tool running", texts.thinking);
    message.append(progress);
    const add = (id, element, target = element) => { progress.before(element); parts.set(id, target); };
    const setOutcome = (id, outcome) => {
      const line = parts.get(id);
      if (!line) return;
      line.classList.replace("running", "complete");
      if (outcome) { line.classList.add("bad"); line.append(`: ${outcome}`); }
    };
    const handlers = {
      "text-start": ({ id }) => add(id, create("p", "assistant-text")),
      "text-delta": ({ id, delta }) => { parts.get(id)?.append(delta); announce(delta, false); },
      "text-end": () => announce(""),
      "reasoning-start": ({ id }) => {
        const details = create("details", "assistant-reasoning"), text = create("p", "assistant-text");
        details.append(create("summary", "", texts.reasoning), text);
        add(id, details, text);
      },
      "reasoning-delta": ({ id, delta }) => parts.get(id)?.append(delta),
      "tool-input-available": ({ toolCallId, toolName }) => {
        if (toolTitles[toolName]) add(toolCallId, create("p", "assistant-tool running", toolTitles[toolName]));
      },
      "tool-output-available": ({ toolCallId }) => setOutcome(toolCallId),
      "tool-output-error": ({ toolCallId }) => setOutcome(toolCallId, texts.failed),
      "tool-output-denied": ({ toolCallId }) => setOutcome(toolCallId, texts.rejected),
      "tool-approval-request": ({ toolCallId }) => parts.get(toolCallId)?.remove(),
      "data-stopped": () => { add("stopped", create("p", "assistant-tool", texts.stopped)); announce(texts.stopped); },
      error: ({ errorText }) => {
        const [, code, detail] = /^(?:(\w+): )?([\s\S]*)$/.exec(errorText);
        showProblem(code || "", detail);
      },
    };
    return {
      show: (frame) => {
        const wasAtEnd = isAtEnd();
        handlers[frame.type]?.(frame);
        if (wasAtEnd) scrollToEnd();
      },
      complete: () => progress.remove(),
      remove: () => message.remove(),
    };
  };

  // Server-sent events: lines `data: …`, separated by blank lines. Return whether the stream was complete.
  const readFrames = async (response, show) => {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let buffer = "", isComplete = false;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return isComplete;
      const events = (buffer + value).split("\n\n");
      buffer = events.pop();
      for (const event of events) {
        if (!event.startsWith("data: ")) continue;
        if (event === "data: [DONE]") isComplete = true; else show(JSON.parse(event.slice(6)));
      }
    }
  };

  const setRunning = (running) => {
    isRunning = running;
    find("[data-stop]").hidden = !running;
    find("[data-composer] .primary").hidden = running;
    body().setAttribute("aria-busy", String(running));
  };

  // Send the turn, and show its answer. After a lost connection, the same request receives the stream from its beginning.
  const followTurn = async (turn, isRepeated) => {
    const input = JSON.parse(turn.body);
    for (const [attempt, seconds] of [...RETRY_SECONDS, null].entries()) {
      let answer = null;
      try {
        const response = await request(`/conversations/${state.conversation}/turns`, { turn: turn.body, submission_id: turn.key });
        // A repeated stream begins with the frames of earlier turns of the same message.
        if ((isRepeated || attempt) && input.approvals) find(".from-assistant:last-child")?.remove();
        answer = createAnswer();
        if (await readFrames(response, answer.show)) { answer.complete(); return; }
      } catch (error) {
        if (error.isRefused) throw error;
      }
      answer?.remove();
      if (seconds === null) throw Object.assign(new Error("disconnected"), { isStored: true });
      await pause(seconds);
    }
  };
  const createKey = () => Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const runTurn = async (input, repeated = null) => {
    if (isRunning) return false;
    setRunning(true);
    clearProblem();
    try {
      if (!state.conversation) save({ conversation: (await (await request("/conversations", { object: panel.dataset.object })).json()).id });
      save({ turn: repeated || { key: createKey(), body: JSON.stringify(input) } });
      if (input.message && !find(`[data-message="${CSS.escape(input.message.id)}"]`)) addUserMessage(input.message);
      find(".assistant-approvals")?.remove();
      scrollToEnd();
      await followTurn(state.turn, Boolean(repeated));
      save({ turn: null });
      await showConversation(state.conversation);
      return true;
    } catch (error) {
      showError(error);
      if (!error.isStored) {
        save({ turn: null });
        if (state.conversation) await showConversation(state.conversation).catch(() => {});
        else showStart();
      }
      return false;
    } finally {
      setRunning(false);
    }
  };
  const sendMessage = async (field) => {
    const text = field.value.trim();
    if (!text || isRunning) return;
    field.value = "";
    const isSent = await runTurn({ message: { id: `msg-${createKey()}`, text } });
    if (!isSent && !state.turn && !field.value) field.value = text;
  };

  // Decisions about the changes that wait for approval. They are sent when all are decided.
  const readArgument = (field) => {
    switch (field.dataset.kind) {
      case "boolean": return field.checked;
      case "number": return Number(field.value);
      case "json": return JSON.parse(field.value);
      default: return field.value;
    }
  };
  const isChanged = (field) => (field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue);
  const readDecision = (card) => {
    const decision = { id: card.dataset.approval, approve: card.dataset.decision === "approve" };
    const reason = card.querySelector("[data-reason]").value.trim();
    const changed = [...card.querySelectorAll("[data-path]")].filter(isChanged);
    if (!decision.approve) return reason ? { ...decision, reason } : decision;
    if (!changed.length) return decision;
    const changedArguments = JSON.parse(card.dataset.arguments);
    for (const field of changed) {
      const path = JSON.parse(field.dataset.path), name = path.pop();
      path.reduce((value, key) => value[key], changedArguments)[name] = readArgument(field);
    }
    return { ...decision, arguments: changedArguments };
  };
  const findInvalidField = (card) => [...card.querySelectorAll("[data-path]")].find((field) => {
    field.setCustomValidity("");
    try { readArgument(field); } catch { field.setCustomValidity(texts.invalid); }
    return !field.checkValidity();
  });
  const disclose = (button, isOpen) => {
    button.setAttribute("aria-expanded", String(isOpen));
    document.getElementById(button.getAttribute("aria-controls")).hidden = !isOpen;
  };
  const decide = (card, decision) => {
    const invalid = decision === "approve" && findInvalidField(card);
    if (invalid) {
      disclose(card.querySelector("[data-disclose]"), true);
      invalid.reportValidity();
      return;
    }
    card.dataset.decision = decision;
    for (const button of card.querySelectorAll("[data-decision-button]")) button.setAttribute("aria-pressed", String(button.dataset.decisionButton === decision));
    const cards = [...panel.querySelectorAll("[data-approval]")], undecided = cards.find((each) => !each.dataset.decision);
    if (undecided) {
      announce(texts.remaining);
      undecided.querySelector("[data-decision-button=approve]").focus();
      return;
    }
    runTurn({ approvals: cards.map(readDecision) });
    document.getElementById("assistant-text").focus();
  };

  panel.addEventListener("click", (event) => {
    const target = (selector) => event.target.closest(selector);
    const link = target("[data-conversation-link]"), disclosure = target("[data-disclose]"), decision = target("[data-decision-button]");
    if (target("[data-close]")) close();
    else if (target("[data-stop]")) request(`/conversations/${state.conversation}/turns`, { turn: '{"stop":true}' }).catch(() => {});
    else if (decision && !isRunning) decide(decision.closest("[data-approval]"), decision.dataset.decisionButton);
    else if (disclosure) {
      const isOpen = disclosure.getAttribute("aria-expanded") !== "true";
      disclose(disclosure, isOpen);
      if (isOpen) document.getElementById(disclosure.getAttribute("aria-controls")).querySelector("input,textarea")?.focus();
    } else if (isRunning) return;
    else if (target("[data-new]")) { clearProblem(); showStart(); document.getElementById("assistant-text").focus(); }
    else if (link) {
      clearProblem();
      save({ conversation: link.dataset.conversationLink, turn: null });
      showConversation(state.conversation).then(() => body().focus(), showError);
    }
  });
  panel.addEventListener("htmx:beforeRequest", (event) => { if (isRunning) event.preventDefault(); });
  panel.addEventListener("htmx:afterRequest", (event) => {
    const deleted = event.target.dataset.deleted;
    if (deleted && deleted === state.conversation) save({ conversation: null, turn: null });
    if (deleted) body().focus();
  });
  panel.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-composer]")) return;
    event.preventDefault();
    sendMessage(document.getElementById("assistant-text"));
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { event.stopPropagation(); close(); }
    else if (event.key === "Enter" && event.target.id === "assistant-text" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      event.target.form.requestSubmit();
    }
  });

  // On a phone, the panel covers the page and is a modal dialog; otherwise it complements the page.
  const setModal = () => {
    const isModal = phone.matches && !panel.hidden;
    for (const element of document.querySelectorAll("body > header, body > main, body > .skip-link")) element.inert = isModal;
    panel.setAttribute("role", isModal ? "dialog" : "complementary");
    if (isModal) panel.setAttribute("aria-modal", "true"); else panel.removeAttribute("aria-modal");
  };
  phone.addEventListener("change", setModal);

  const resume = async () => {
    if (!state.conversation) { showStart(); return; }
    await showConversation(state.conversation);
    const turn = state.turn, input = turn && JSON.parse(turn.body);
    if (!turn) return;
    // A message that the conversation contains has been answered.
    if (input.message && find(`[data-message="${CSS.escape(input.message.id)}"]`)) save({ turn: null });
    else await runTurn(input, turn);
  };
  const load = async () => {
    await window.htmx.ajax("GET", panel.dataset.url, { target: panel, swap: "innerHTML" });
    const data = find("[data-texts]")?.dataset;
    if (!data) { close(); return false; }
    texts = data;
    toolTitles = JSON.parse(data.tools);
    return true;
  };
  let loading = null;
  const open = async (isRequested) => {
    panel.hidden = false;
    document.body.classList.add("assistant-open");
    toggle.setAttribute("aria-expanded", "true");
    save({ open: true });
    setModal();
    if (isRequested) panel.focus();
    const isFirst = !loading;
    loading ||= load();
    if (!(await loading)) { loading = null; return; }
    if (isFirst) resume().catch(showError);
    if (isRequested && !panel.hidden) {
      const field = document.getElementById("assistant-text");
      (field.disabled ? panel : field).focus();
    }
  };
  const close = () => {
    panel.hidden = true;
    document.body.classList.remove("assistant-open");
    toggle.setAttribute("aria-expanded", "false");
    save({ open: false });
    setModal();
    toggle.focus();
  };
  toggle.hidden = false;
  toggle.addEventListener("click", () => { if (panel.hidden) open(true); else close(); });
  // A page that was opened by a link starts with its content on a phone.
  if (state.open && !phone.matches) open(false);
})();

// Chat of the AI SDK without a user interface, with the transport of docs/assistant.md. Reads commands as lines of JSON: `start` names
// a method of the chat, `wait` a text that the messages must contain; otherwise the method must have ended. Prints the state after each.

import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import {
  AbstractChat,
  convertToModelMessages,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  validateUIMessages,
} from "ai";
import { createTransport, stopTurn } from "./transport.ts";

class ChatState {
  status = "ready";
  error = undefined;

  constructor(messages) {
    this.messages = messages;
  }

  pushMessage = (message) => {
    this.messages = [...this.messages, message];
  };

  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };

  replaceMessage = (index, message) => {
    this.messages = this.messages.with(index, structuredClone(message));
  };

  snapshot = (value) => structuredClone(value);
}

class Chat extends AbstractChat {
  constructor({ messages, ...init }) {
    super({ ...init, state: new ChatState(messages) });
  }
}

const { JOINERY_URL, JOINERY_TOKEN, CONVERSATION } = process.env;
const stored = new Map(Object.entries(JSON.parse(process.env.STORED ?? "{}")));
const storage = { getItem: (key) => stored.get(key) ?? null, setItem: (key, value) => stored.set(key, value), removeItem: (key) => stored.delete(key) };
const authorize = () => ({ Authorization: `Bearer ${JOINERY_TOKEN}` });
let cut;

// A connection that breaks off after a text, as a lost network does.
const unreliableFetch = async (address, init) => {
  const response = await fetch(address, init);
  if (!cut || !response.body) return response;
  const text = cut;
  cut = undefined;
  const breakOff = new TransformStream({
    transform(chunk, controller) {
      controller.enqueue(chunk);
      if (new TextDecoder().decode(chunk).includes(text)) controller.error(new TypeError("network error"));
    },
  });
  return new Response(response.body.pipeThrough(breakOff), { status: response.status, headers: response.headers });
};

const read = async () => {
  const address = `${JOINERY_URL}/v1/assistant/conversations/${CONVERSATION}`;
  return (await fetch(address, { headers: authorize() })).json();
};
const loaded = (await read()).messages;
const messages = loaded.length ? await validateUIMessages({ messages: loaded }) : [];
const data = [];
const requests = [];
const chat = new Chat({
  id: CONVERSATION,
  messages,
  transport: createTransport(JOINERY_URL, CONVERSATION, authorize, storage, (address, init) => {
    requests.push({ ...JSON.parse(init.body), key: new Headers(init.headers).get("Idempotency-Key") });
    return unreliableFetch(address, init);
  }),
  sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  onData: (part) => data.push(part),
});
const methods = {
  sendMessage: (text) => chat.sendMessage({ text }),
  decide: (decisions) => Promise.all(decisions.map((decision) => chat.addToolApprovalResponse(decision))),
  regenerate: () => chat.regenerate(),
  resume: () => chat.resumeStream(),
  abort: () => chat.stop(),
  stopTurn: () => stopTurn(JOINERY_URL, CONVERSATION, authorize),
  cutAfter: (text) => void (cut = text),
};

let running = Promise.resolve();
for await (const line of createInterface({ input: process.stdin })) {
  const { start, argument, wait } = JSON.parse(line);
  if (start) running = Promise.all([running, methods[start](argument)]);
  if (wait === undefined) await running;
  while (wait && !JSON.stringify(chat.messages).includes(wait)) await sleep(10);
  while (wait === undefined && ["submitted", "streaming"].includes(chat.status)) await sleep(10);
  const conversation = wait === undefined ? await read() : undefined;
  if (conversation?.messages.length) await validateUIMessages({ messages: conversation.messages });
  console.log(
    JSON.stringify({
      status: chat.status,
      error: chat.error?.message,
      messages: chat.messages,
      model_messages: await convertToModelMessages(chat.messages),
      conversation,
      stored_model_messages: conversation && (await convertToModelMessages(conversation.messages)),
      data,
      requests,
      stored: Object.fromEntries(stored),
    }),
  );
}

// The chats: kept in the browser, answered by POST /v1/chat/completions in pieces.
import { readEvents } from "./events.js";
import { renderText } from "./text.js";

const STORE = "headrace.chats";
const element = (id) => document.getElementById(id);

let chats = load();
let current = chats[0];
let running = null; // AbortController of the answer on its way

function load() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORE));
    if (Array.isArray(kept) && kept.length > 0) return kept;
  } catch {
    // What another version left there, or no store at all: begin anew.
  }
  return [newChat()];
}

function newChat() {
  return { id: crypto.randomUUID?.() ?? String(Math.random()), title: "New chat", messages: [], parameters: {} };
}

function save() {
  try {
    localStorage.setItem(STORE, JSON.stringify(chats));
  } catch {
    // The store is full or forbidden: the chats last as long as the page.
  }
}

/** Another tab has written the store: its chats are taken over, but the one that is open here stays as it is. */
function takeOver() {
  const isOurs = (chat) => chat.id === current.id;
  const theirs = load();
  chats = theirs.some(isOurs) ? theirs.map((chat) => (isOurs(chat) ? current : chat)) : [current, ...theirs];
  showChats();
}

function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

function showChats() {
  element("chats").replaceChildren(
    ...chats.map((chat) => {
      const title = make("button", { type: "button", className: "title", textContent: chat.title });
      if (chat === current) title.setAttribute("aria-current", "true");
      title.addEventListener("click", () => open(chat));
      const remove = make("button", { type: "button", className: "remove", textContent: "×" });
      remove.setAttribute("aria-label", `Remove the chat "${chat.title}"`);
      remove.addEventListener("click", () => {
        if (chat === current) running?.abort();
        chats = chats.filter((each) => each !== chat);
        if (chats.length === 0) chats = [newChat()];
        save();
        open(chat === current ? chats[0] : current);
      });
      return make("li", { className: chat === current ? "current" : "" }, title, remove);
    }),
  );
}

const NAMES = { user: "You", assistant: "Model", fault: "It failed" };

function showMessage(message) {
  const body = make("div", { className: "body" });
  const figures = make("div", { className: "figures" });
  const node = make("article", { className: `message ${message.role}` },
    make("div", { className: "who", textContent: NAMES[message.role] }), body, figures);
  const update = () => {
    const follow = element("messages").scrollHeight - element("messages").scrollTop - element("messages").clientHeight < 80;
    body.replaceChildren(...renderText(message.content));
    if (message.reasoning) {
      const thoughts = make("details", { className: "reasoning" },
        make("summary", { textContent: "Reasoning" }), message.reasoning);
      thoughts.open = message.content === "";
      body.prepend(thoughts);
    }
    figures.textContent = message.figures ?? "";
    if (follow) element("messages").scrollTop = element("messages").scrollHeight;
  };
  element("messages").append(node);
  update();
  return { node, update };
}

const PARAMETERS = ["system", "temperature", "top_p", "max_tokens", "seed"];

function open(chat) {
  if (chat !== current) running?.abort();
  current = chat;
  showChats();
  element("messages").replaceChildren();
  if (chat.messages.length === 0) {
    element("messages").append(make("p", { className: "welcome", textContent: "Ask anything. Chats stay in this browser." }));
  }
  for (const message of chat.messages) showMessage(message);
  for (const name of PARAMETERS) element(name).value = chat.parameters[name] ?? "";
  element("messages").scrollTop = element("messages").scrollHeight;
}

function requestBody(chat, model) {
  const { system, ...numbers } = chat.parameters;
  const messages = chat.messages.filter((m) => m.role !== "fault").map(({ role, content }) => ({ role, content }));
  if (system) messages.unshift({ role: "system", content: system });
  const body = { model, messages, stream: true, stream_options: { include_usage: true } };
  for (const [name, value] of Object.entries(numbers)) if (value !== "") body[name] = Number(value);
  return body;
}

async function answer(chat, model) {
  const message = { role: "assistant", content: "" };
  const body = requestBody(chat, model);
  const { node, update } = showMessage(message);
  const begin = performance.now();
  let first = 0;
  running = new AbortController();
  setBusy(true);
  try {
    const response = await fetch("/v1/chat/completions", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal: running.signal,
    });
    for await (const event of readEvents(response)) {
      const delta = event.choices[0]?.delta;
      first ||= performance.now();
      message.content += delta?.content ?? "";
      if (delta?.reasoning_content) message.reasoning = (message.reasoning ?? "") + delta.reasoning_content;
      if (event.usage) {
        const seconds = (performance.now() - first) / 1000;
        const rate = (event.usage.completion_tokens - 1) / Math.max(seconds, 1e-3);
        message.figures = `${event.usage.completion_tokens} tokens, first after ${((first - begin) / 1000).toFixed(2)} s, `
          + `then ${rate.toFixed(1)} a second`;
      }
      update();
    }
  } catch (error) {
    if (error.name === "AbortError") message.figures = "stopped";
    else chat.messages.push({ role: "fault", content: error.message });
    update();
  }
  if (message.content || message.reasoning) {
    const fault = chat.messages.at(-1)?.role === "fault" ? [chat.messages.pop()] : [];
    chat.messages.push(message, ...fault);
  } else if (chat.messages.at(-1).role === "fault") {
    node.remove();
  }
  if (chat === current && chat.messages.at(-1)?.role === "fault") showMessage(chat.messages.at(-1));
  running = null;
  setBusy(false);
  save();
}

function setBusy(busy) {
  const [shown, hidden] = busy ? [element("stop"), element("send")] : [element("send"), element("stop")];
  // Of a button that goes, the focus would be lost.
  if (document.activeElement === hidden) element("question").focus();
  shown.hidden = false;
  hidden.hidden = true;
  element("messages").setAttribute("aria-busy", String(busy));
}

/** `connecting`: a promise of the model's name. */
export function startChat(connecting) {
  open(current);
  window.addEventListener("storage", (event) => event.key === STORE && takeOver());
  element("new-chat").addEventListener("click", () => {
    const empty = chats.find((chat) => chat.messages.length === 0) ?? newChat();
    chats = [empty, ...chats.filter((chat) => chat !== empty)];
    open(empty);
    element("question").focus();
  });
  element("stop").addEventListener("click", () => running?.abort());
  element("view-chat").addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.isComposing) running?.abort();
  });
  element("question").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    element("composer").requestSubmit();
  });
  for (const name of PARAMETERS) {
    element(name).addEventListener("change", () => {
      current.parameters[name] = element(name).value;
      save();
    });
  }
  element("composer").addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = element("question").value.trim();
    if (text === "" || running) return;
    element("question").value = "";
    const chat = current;
    if (chat.messages.length === 0) {
      chat.title = text.slice(0, 60);
      element("messages").replaceChildren();
    }
    chat.messages.push({ role: "user", content: text });
    showMessage(chat.messages.at(-1));
    showChats();
    save();
    await answer(chat, await connecting);
  });
}

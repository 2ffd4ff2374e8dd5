// The frame of the page: which view is shown, and how the server is.
import { startChat } from "./chat.js";
import { startLive, stopLive } from "./live.js";

const tabs = [document.getElementById("tab-chat"), document.getElementById("tab-live")];

function show(tab) {
  for (const each of tabs) {
    const selected = each === tab;
    each.setAttribute("aria-selected", String(selected));
    each.tabIndex = selected ? 0 : -1;
    document.getElementById(each.getAttribute("aria-controls")).hidden = !selected;
  }
  if (tab.id === "tab-live") startLive();
  else stopLive();
}

for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => show(tab));
  tab.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const next = tabs[(i + 1) % tabs.length];
    next.focus();
    show(next);
  });
}

/** Asks until the server is ready, then says what it serves; returns the model's name. */
async function connect() {
  const status = document.getElementById("status");
  for (;;) {
    try {
      const ready = await fetch("/readyz");
      if (ready.ok) {
        const model = (await (await fetch("/v1/models")).json()).data[0];
        const name = model.id.split("/").at(-1); // of a path, its end
        status.textContent = `${name}, up to ${model.max_model_len.toLocaleString()} tokens`;
        status.title = model.id;
        document.title = `${name} - Headrace`;
        return model.id;
      }
      const state = await ready.json();
      status.textContent = state.phase === "loading" ? `the model is being loaded: ${state.percent} %` : state.phase;
    } catch {
      status.textContent = "the server does not answer";
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

startChat(connect());

// The machines of a cluster, in the live view: what GET /v1/cluster tells, sums turned into what the last seconds brought.
import { bytes, share } from "./units.js";

const WINDOW = 30; // seconds over which times and bytes are taken, by the server's clock
let samples = []; // answers of GET /v1/cluster of that time

const together = (text) => text.replaceAll(" ", "\u00a0"); // on one line
const count = (number, thing) => `${number} ${thing}${number === 1 ? "" : "s"}`;

/** What each machine did between two answers, a second of it: {busy, compute, serialise, wire, wait, sent, received}. */
function perSecond(before, now) {
  const span = now.seconds - before.seconds;
  if (!(span > 0)) return now.nodes.map(() => null);
  return now.nodes.map((node, i) => {
    const was = before.nodes[i];
    const gained = (of) => Math.max(0, of(node) - of(was)) / span;
    return {
      busy: Math.max(0, node.busy_share * now.seconds - was.busy_share * before.seconds) / span,
      compute: gained((each) => each.seconds.compute),
      serialise: gained((each) => each.seconds.serialise),
      wire: gained((each) => each.seconds.wire),
      wait: gained((each) => each.seconds.wait),
      sent: gained((each) => each.link.sent_bytes),
      received: gained((each) => each.link.received_bytes),
    };
  });
}

function layers({ first_layer: first, num_layers: number, layers: which }) {
  if (number === 0 || first % 1 !== 0 || number % 1 !== 0) return which;
  return together(`${count(number, "layer")} (${number === 1 ? first : `${first}–${first + number - 1}`})`);
}

function machine(node) {
  return [node.name, node.up ? `answers; ${node.isa}, ${together(count(node.threads, "thread"))}` : "✕ does not answer"];
}

function held({ units }) {
  return [layers(units), [units.embedding && "embedding", units.output && "output"].filter(Boolean).join(", ")];
}

function memory({ memory: { limit_bytes: limit, weight_bytes: weights, kv_cache_bytes: cache } }) {
  const parts = [`weights ${bytes(weights)}`, `KV cache ${bytes(cache)}`];
  return [`${bytes(weights + cache)} of ${bytes(limit)}`, parts.map(together).join(", ")];
}

function split(_, recent) {
  if (!recent) return ["–"];
  const { compute, serialise, wire, wait } = recent;
  const parts = { computing: compute, converting: serialise, sending: wire, waiting: wait };
  return [Object.entries(parts).map(([name, value]) => together(`${name} ${share(value)}`)).join(", ")];
}

function roundTrip({ up, link: { round_trip_seconds: value } }) {
  return [up && value > 0 ? `${(1000 * value).toFixed(value < 0.01 ? 2 : 0)} ms` : "–"];
}

// Of each column its heading, and the text of a machine's cell: [what is large, what is small].
const COLUMNS = [
  ["Machine", machine],
  ["Holds", held],
  ["Memory", memory],
  ["Busy", (_, recent) => [recent ? share(Math.min(recent.busy, 1)) : "–"]],
  ["Its time", split],
  ["Round trip", roundTrip],
  ["Sent", (_, recent) => [recent ? together(`${bytes(recent.sent)}/s`) : "–"]],
  ["Received", (_, recent) => [recent ? together(`${bytes(recent.received)}/s`) : "–"]],
];

/** An element with a role of its own: as cards, on narrow screens, a table's elements would lose theirs. */
function element(tag, role, ...children) {
  const made = document.createElement(tag);
  if (role) made.setAttribute("role", role);
  made.append(...children);
  return made;
}

function makeRow() {
  return element("tr", "row", ...COLUMNS.map(([name], i) => {
    const cell = element(i === 0 ? "th" : "td", i === 0 ? "rowheader" : "cell", element("span"), element("small"));
    if (i === 0) cell.scope = "row";
    cell.dataset.name = name; // for cards, which have no headings above
    if (name === "Busy") {
      const bar = element("span", null, element("span"));
      bar.className = "bar";
      bar.setAttribute("aria-hidden", "true"); // the number beside it says the same
      cell.append(bar);
    }
    return cell;
  }));
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function showMachines(nodes, recent) {
  const head = document.querySelector("#machines thead tr");
  if (!head.children.length) {
    head.append(...COLUMNS.map(([name]) => {
      const heading = element("th", "columnheader", name);
      heading.scope = "col";
      return heading;
    }));
  }
  const body = document.querySelector("#machines tbody");
  if (body.children.length !== nodes.length) body.replaceChildren(...nodes.map(makeRow));
  nodes.forEach((node, i) => {
    const row = body.children[i];
    const lately = node.up ? recent[i] : null;
    row.classList.toggle("down", !node.up);
    COLUMNS.forEach(([, texts], k) => {
      const [large, small = ""] = texts(node, lately);
      setText(row.children[k].children[0], large);
      setText(row.children[k].children[1], small);
    });
    row.querySelector(".bar > span").style.width = `${100 * Math.min(lately?.busy ?? 0, 1)}%`;
  });
}

/** Compute time of the slowest machine over the mean of all. */
function imbalance(recent) {
  const computed = recent.map((each) => each?.compute ?? 0);
  const sum = computed.reduce((a, b) => a + b, 0);
  return sum > 0 ? ((Math.max(...computed) * computed.length) / sum).toFixed(2) : "–";
}

function fault({ up, nodes }) {
  const down = nodes.filter((node) => !node.up).map((node) => node.name);
  const silent = down.length && `${down.join(" and ")} ${down.length === 1 ? "does" : "do"} not answer.`;
  if (up) return silent || "";
  return `The pipeline stands still: ${silent || "the machines are being joined again."} ` +
    "Answers that have begun go on once all machines are there again, or end after --rejoin-timeout seconds.";
}

/** Shows an answer of GET /v1/cluster; hides the section where there is no cluster (null, or one machine). */
export function showCluster(cluster) {
  const alone = !cluster || cluster.nodes.length < 2;
  document.getElementById("cluster").hidden = alone;
  const told = document.getElementById("cluster-fault");
  setText(told, alone ? "" : fault(cluster));
  told.hidden = told.textContent === "";
  if (alone) {
    samples = [];
    return;
  }
  // Sums begin again with the pipeline, when a lost machine is back.
  if (samples.length && (cluster.seconds < samples.at(-1).seconds || cluster.losses !== samples.at(-1).losses)) samples = [];
  samples = samples.filter((sample) => sample.seconds >= cluster.seconds - WINDOW);
  samples.push(cluster);
  const recent = perSecond(samples[0], cluster);
  setText(document.getElementById("pipeline"), cluster.up ? "running" : "stands still");
  setText(document.getElementById("in-flight"), `${cluster.steps_in_flight} of ${cluster.steps_in_flight_limit}`);
  setText(document.getElementById("imbalance"), imbalance(recent));
  setText(document.getElementById("losses"), String(cluster.losses));
  setText(document.getElementById("placement"), cluster.placement);
  showMachines(cluster.nodes, recent);
}

// The live view: figures of GET /metrics and, of a cluster, GET /v1/cluster, once a second while it is shown.
import { showCluster } from "./cluster.js";
import { seconds, share } from "./units.js";

const SECONDS = 120; // shown in the charts
const WINDOW = 30; // over which rates and percentiles are taken
let timer = 0;
let samples = []; // of the last SECONDS: {time, values, histograms}

/** Samples of the text format by name, summed over labels; histograms as sorted [bound, count]. */
export function parseMetrics(text) {
  const values = new Map();
  const histograms = new Map();
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!match) continue;
    const [, name, labels, number] = match;
    const bound = name.endsWith("_bucket") && /le="([^"]+)"/.exec(labels ?? "");
    if (bound) {
      const histogram = histograms.get(name.slice(0, -7)) ?? new Map();
      histograms.set(name.slice(0, -7), histogram);
      const le = bound[1] === "+Inf" ? Infinity : Number(bound[1]);
      histogram.set(le, (histogram.get(le) ?? 0) + Number(number));
    } else {
      values.set(name, (values.get(name) ?? 0) + Number(number));
    }
  }
  return { values, histograms };
}

/** A percentile of what a histogram counted between two samples, within its bucket by proportion; null: nothing. */
export function percentile(before, now, share) {
  if (!now) return null;
  const counts = [...now].map(([bound, count]) => [bound, count - (before?.get(bound) ?? 0)]).sort((a, b) => a[0] - b[0]);
  const total = counts.at(-1)?.[1] ?? 0;
  if (total <= 0) return null;
  let low = 0;
  let below = 0;
  for (const [bound, count] of counts) {
    if (count >= share * total) {
      if (bound === Infinity) return low;
      return low + ((bound - low) * (share * total - below)) / Math.max(count - below, 1e-9);
    }
    low = bound;
    below = count;
  }
  return low;
}

function figures() {
  const now = samples.at(-1);
  const before = samples.find((sample) => sample.time >= now.time - WINDOW * 1000) ?? now;
  const value = (name) => now.values.get(name) ?? 0;
  const span = Math.max((now.time - before.time) / 1000, 1e-3);
  const rate = (name) => (now === before ? 0 : (value(name) - (before.values.get(name) ?? 0)) / span);
  const gained = (name) => value(name) - (before.values.get(name) ?? 0);
  const quantiles = (name) => [0.5, 0.99].map((q) =>
    seconds(percentile(before === now ? null : before.histograms.get(name), now.histograms.get(name), q))).join(" / ");
  const asked = gained("vllm:prefix_cache_queries_total");
  return [
    ["Running", value("vllm:num_requests_running")],
    ["Waiting", value("vllm:num_requests_waiting")],
    ["Tokens written a second", rate("vllm:generation_tokens_total").toFixed(1)],
    ["Prompt tokens a second", rate("vllm:prompt_tokens_total").toFixed(1)],
    ["First token, P50 / P99", quantiles("vllm:time_to_first_token_seconds")],
    ["Gap between tokens, P50 / P99", quantiles("vllm:inter_token_latency_seconds")],
    ["KV cache in use", share(value("vllm:kv_cache_usage_perc"))],
    ["Prompt found in cache", asked > 0 ? share(gained("vllm:prefix_cache_hits_total") / asked) : "–"],
    ["Steps a second", rate("headrace_steps_total").toFixed(1)],
    ["Preemptions", value("vllm:num_preemptions_total")],
  ];
}

function showTiles() {
  const tiles = document.getElementById("tiles");
  const rows = figures();
  if (tiles.children.length !== rows.length) {
    tiles.replaceChildren(...rows.map(() => {
      const tile = document.createElement("div");
      tile.append(document.createElement("dt"), document.createElement("dd"));
      return tile;
    }));
  }
  rows.forEach(([name, value], i) => {
    const [dt, dd] = tiles.children[i].children;
    if (dt.textContent !== name) dt.textContent = name;
    dd.textContent = value;
  });
}

const CHARTS = [
  ["Tokens written a second", (a, b) => ((b.values.get("vllm:generation_tokens_total") ?? 0) - (a.values.get("vllm:generation_tokens_total") ?? 0)) / ((b.time - a.time) / 1000)],
  ["Requests running", (_, b) => b.values.get("vllm:num_requests_running") ?? 0],
  ["KV cache in use, %", (_, b) => 100 * (b.values.get("vllm:kv_cache_usage_perc") ?? 0)],
];

function showCharts() {
  const charts = document.getElementById("charts");
  const SVG = "http://www.w3.org/2000/svg";
  CHARTS.forEach(([name, of], i) => {
    let figure = charts.children[i];
    if (!figure) {
      figure = document.createElement("figure");
      const svg = document.createElementNS(SVG, "svg");
      svg.setAttribute("viewBox", "0 0 120 40");
      svg.setAttribute("preserveAspectRatio", "none");
      svg.setAttribute("role", "img");
      svg.append(document.createElementNS(SVG, "path"));
      const caption = document.createElement("figcaption");
      caption.append(document.createElement("span"), document.createElement("span"));
      figure.append(caption, svg);
      charts.append(figure);
    }
    const points = samples.slice(1).map((sample, k) => [sample.time, of(samples[k], sample)]);
    const most = Math.max(1e-9, ...points.map((point) => point[1]));
    const end = samples.at(-1).time;
    const path = points.map(([time, value], k) =>
      `${k === 0 ? "M" : "L"}${(120 - (end - time) / 1000).toFixed(2)} ${(38 - (36 * value) / most).toFixed(2)}`).join("");
    figure.querySelector("path").setAttribute("d", path);
    const last = points.at(-1)?.[1] ?? 0;
    figure.querySelector("svg").setAttribute("aria-label", `${name}, the last two minutes: now ${last.toFixed(1)}, at most ${most.toFixed(1)}`);
    const [left, right] = figure.querySelector("figcaption").children;
    left.textContent = name;
    right.textContent = `at most ${most.toFixed(1)}`;
  });
}

async function get(path) {
  const response = await fetch(path);
  if (response.status === 403) throw new Error("This view is for keys marked 'admin'.");
  if (!response.ok) throw new Error(`The server answered with status ${response.status}.`);
  return response;
}

async function refresh() {
  const fault = document.getElementById("live-fault");
  try {
    const response = await get("/metrics");
    const now = Date.now();
    samples = samples.filter((sample) => sample.time > now - SECONDS * 1000);
    samples.push({ time: now, ...parseMetrics(await response.text()) });
    fault.hidden = true;
    showTiles();
    showCharts();
    const spread = samples.at(-1).values.has("headrace_node_up"); // one machine's metrics have no rows of it
    showCluster(spread ? await (await get("/v1/cluster")).json() : null);
  } catch (error) {
    fault.textContent = error.message === "Failed to fetch" ? "The server does not answer." : error.message;
    fault.hidden = false;
  }
}

export function startLive() {
  if (timer) return;
  refresh();
  timer = setInterval(() => document.hidden || refresh(), 1000);
}

export function stopLive() {
  clearInterval(timer);
  timer = 0;
}

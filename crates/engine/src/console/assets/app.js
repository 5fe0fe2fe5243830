// The page: asks for the state of the server once a second, shows it, and carries actions out.

import {
  Table, bars, bytes, clock, duration, el, key, percent, rate, short, spark, span, stack, whole, write,
} from "./views.js";

/** Milliseconds between two looks, and how many are remembered: three minutes. */
const EVERY = 1000;
const REMEMBERED = 180;
/** Looks that ratios and latency are taken over: a minute. */
const WINDOW = 60;
const PROTOCOLS = [["h1", "HTTP/1"], ["h2", "HTTP/2"], ["h3", "HTTP/3"]];
const RESULTS = [["hits", "hit"], ["stale", "stale"], ["misses", "miss"], ["passes", "bypass"]];

const $ = (id) => document.getElementById(id);
const meta = (name) => document.querySelector(`meta[name="${name}"]`).content;

/** What the server said, the newest last. */
const history = [];
let isPaused = false;

// What changes between two looks

const last = () => history[history.length - 1];
const before = (looks) => history[Math.max(0, history.length - 1 - looks)];
const seconds = (one, other) => Math.max(0.001, (other.unix_ms - one.unix_ms) / 1000);

/** The figure per second between each two looks. A server that began anew began at zero. */
function rates(figure) {
  return history.slice(1).map((now, at) => {
    const was = history[at];
    const more = now.pid === was.pid ? figure(now) - figure(was) : figure(now);
    return Math.max(0, more) / seconds(was, now);
  });
}

/** How much a figure has grown over the window. */
const grown = (figure) => Math.max(0, figure(last()) - figure(before(WINDOW)));
const newest = (values) => values[values.length - 1] ?? 0;
const requests = (state) => PROTOCOLS.reduce((sum, [name]) => sum + state.requests[name], 0);

// At a glance

const tiles = new Map();

function tile(name, value, more, values, label) {
  let made = tiles.get(name);
  if (!made) {
    made = { value: el("dd"), more: el("dd", { class: "more" }), spark: el("dd", { class: "more" }) };
    tiles.set(name, made);
    $("tiles").append(el("div", { class: "tile" }, el("dt", {}, name), made.value, made.more, made.spark));
  }
  write(made.value, value);
  write(made.more, more);
  made.spark.replaceChildren(spark(values, label));
}

function showTiles(state) {
  const all = rates(requests);
  tile("Requests per second", rate(newest(all)), `${short(requests(state))} in all`, all,
    `Requests per second, now ${rate(newest(all))}, at most ${rate(Math.max(0, ...all))}`);
  const errors = rates(({ requests: { classes } }) => classes["5xx"]);
  const failed = grown(({ requests: { classes } }) => classes["5xx"]);
  tile("Server errors", rate(newest(errors)), `${short(failed)} in the last minute`, errors,
    `Server errors per second, now ${rate(newest(errors))}`);
  const active = history.map(({ connections }) => open(connections));
  tile("Connections", whole(newest(active)), waiting(state.connections), active,
    `Connections, now ${whole(newest(active))}`);
  const out = rates(({ latency }) => latency.bytes_out);
  tile("Sent per second", bytes(newest(out)), `${bytes(state.latency.bytes_out)} in all`, out,
    `Bytes sent per second, now ${bytes(newest(out))}`);
  const memory = history.map(({ resident_bytes: held }) => held ?? 0);
  tile("Memory", bytes(state.resident_bytes), `${whole(state.descriptors)} of ${short(state.descriptors_max)} descriptors`,
    memory, `Resident memory, now ${bytes(state.resident_bytes)}`);
  const busy = rates(({ cpu_ms: used }) => (used ?? 0) / 10);
  tile("Processor", `${rate(newest(busy))} %`, `${state.workers.length} workers`, busy,
    `Processor time in per cent of a core, now ${rate(newest(busy))}`);
}

const open = (of) => of.unknown.active + PROTOCOLS.reduce((sum, [name]) => sum + of[name].active, 0);
const waiting = (of) => `${whole(PROTOCOLS.reduce((sum, [name]) => sum + of[name].waiting, of.unknown.waiting))} idle`;

// Traffic and latency

function showTraffic() {
  const series = PROTOCOLS.map(([name]) => ({ name, values: rates((state) => state.requests[name]) }));
  const sums = series[0].values.map((_, at) => series.reduce((sum, { values }) => sum + values[at], 0));
  const top = Math.max(1, ...sums);
  const label = `Requests per second over the last ${span((sums.length * EVERY) / 1000)}, at most ${rate(top)}`;
  $("traffic").replaceChildren(stack(series, top, label), el("span", { class: "scale" }, rate(top)));
  $("legend").replaceChildren(...PROTOCOLS.map(([name, title], at) =>
    el("span", {}, key(name), `${title} `, el("b", {}, rate(newest(series[at].values))))));
}

function showLatency(state) {
  const was = before(WINDOW);
  const counts = state.latency.counts.map((count, at) => Math.max(0, count - (was.latency.counts[at] ?? 0)));
  const all = counts.reduce((sum, count) => sum + count, 0);
  const mean = all ? duration(grown(({ latency }) => latency.sum_us) / all) : "–";
  write($("latency-span"), `mean ${mean} over ${span(seconds(was, state))}`);
  const bounds = state.latency.bounds_us;
  const name = (at) => (at < bounds.length ? `≤ ${duration(bounds[at]).replace(".0", "")}` : "longer");
  $("latency").replaceChildren(bars(counts.map((value, at) => ({
    name: name(at), value, text: percent(value, all), style: at < 5 ? "h1" : "h3",
  }))));
}

// The cache

const doctorItems = new Map();

function showDoctor(state) {
  const all = state.doctor ?? [];
  $("doctor-section").hidden = !state.doctor;
  const items = all.map((one) => {
    const name = [one.space, one.reason, one.refusal, one.pattern].join("\n");
    const item = doctorItems.get(name) ?? remedy(one);
    doctorItems.set(name, item);
    write(item.querySelector(".share").firstChild, percent(one.requests, one.of_requests));
    return item;
  });
  if (items.length === 0) items.push(el("li", {}, el("span"), el("p", { class: "none" }, "Nothing stands out.")));
  const place = $("doctor");
  const isSame = items.length === place.children.length && items.every((item, at) => place.children[at] === item);
  if (!isSame) place.replaceChildren(...items);
}

function remedy(one) {
  const share = el("span", { class: "share" }, "", el("small", {}, one.reason));
  share.prepend(document.createTextNode("–"));
  const what = el("p", {}, el("span", { class: "code" }, one.pattern), ` ${one.why}`);
  const how = el("p", { class: "remedy" }, one.remedy);
  return el("li", {}, share, el("div", {}, what, how));
}

function showCache(state) {
  const { cache } = state;
  if (cache === null) {
    $("cache").replaceChildren(el("p", { class: "none" }, "No location caches."));
    return $("reasons").replaceChildren();
  }
  const of = (name) => (one) => (one.cache ? one.cache.parts.reduce((sum, part) => sum + part[name], 0) : 0);
  const sums = RESULTS.map(([name, style]) => ({ style, value: grown(of(name)) }));
  const all = sums.reduce((sum, { value }) => sum + value, 0);
  const ever = RESULTS.map(([name]) => of(name)(state));
  const everAll = ever.reduce((sum, value) => sum + value, 0);
  const filled = percent(cache.bytes, cache.bytes_max);
  $("cache").replaceChildren(
    el("p", { class: "legend" },
      el("span", {}, "answered from the cache ", el("b", {}, percent(sums[0].value + sums[1].value, all))),
      el("span", {}, "since the start ", el("b", {}, percent(ever[0] + ever[1], everAll)))),
    bars(sums.map(({ style, value }) => ({ name: style, value, text: percent(value, all), style }))),
    el("p", { class: "none" }, `${short(cache.objects)} objects, ${bytes(cache.bytes)} of ${bytes(cache.bytes_max)} (${filled}), `
      + `${whole(cache.fills)} being fetched`));
}

// Tables

const number = "number";
const state_of = (isGood, good, bad) => (isGood ? good : bad);

const tables = {
  reasons: new Table($("reasons"), "Reasons why the cache did not answer", [
    { name: "Why not", text: ({ reason }) => reason },
    { name: "Result", text: ({ result }) => result },
    { name: "Requests", style: number, text: ({ requests: count }) => whole(count) },
  ], "", ({ result, reason }) => `${result} ${reason}`),
  upstreams: new Table($("upstreams"), "Servers of upstream groups", [
    { name: "Server", style: "long", text: ({ name }) => name },
    { name: "Group", style: "long", text: ({ group }) => group },
    { name: "State", text: ({ is_up: up }) => state_of(up, "up", "down"), mood: ({ is_up: up }) => state_of(up, "good", "bad") },
    { name: "Active", style: number, text: ({ active }) => whole(active) },
    { name: "Requests", style: number, text: ({ requests: count }) => short(count) },
    { name: "Failures", style: number, text: ({ failures }) => short(failures) },
  ], "There are no upstream groups.", ({ group, name }) => `${group} ${name}`),
  php: new Table($("php"), "PHP pools", [
    { name: "Pool", text: ({ name }) => name },
    { name: "State", text: ({ state }) => state, mood: ({ state }) => state_of(state === "running", "good", "bad") },
    { name: "Processes", style: number, text: (pool) => `${pool.children} of ${pool.children_max}` },
    { name: "Up for", style: number, text: (pool) => (pool.pid === null ? "–" : span(pool.seconds)) },
    { name: "Ended", style: number, text: ({ ended }) => whole(ended) },
    { name: "", style: number, make: restart },
  ], "The server runs no PHP pools.", ({ name }) => name),
  certificates: new Table($("certificates"), "Certificates", [
    { name: "Server", text: ({ server }) => server },
    { name: "File", style: "long code", text: ({ file }) => file },
    { name: "Days left", style: number, text: ({ days_left: days }) => whole(days), mood: ({ days_left: days }) => lifetime(days) },
  ], "There are no certificates.", ({ server, file }) => `${server} ${file}`),
  locations: new Table($("locations"), "Locations by requests", [
    { name: "Server", text: ({ server }) => server },
    { name: "Location", style: "long code", text: ({ location }) => location },
    { name: "Requests", style: number, text: ({ requests: count }) => short(count) },
    { name: "4xx", style: number, text: (one) => short(one["4xx"]) },
    { name: "5xx", style: number, text: (one) => short(one["5xx"]), mood: (one) => state_of(one["5xx"] === 0, "", "bad") },
  ], "No request has ended yet.", ({ server, location }) => `${server} ${location}`),
  slow: new Table($("slow"), "Slow requests", [
    { name: "Duration", style: number, text: ({ duration_us: micros }) => duration(micros) },
    { name: "Ended", text: ({ unix_ms: at }) => clock(at) },
    { name: "Request", style: "long code", text: ({ method, host, target }) => `${method} ${host}${target}` },
    { name: "Status", style: number, text: ({ status }) => String(status), mood: ({ status }) => state_of(status < 500, "", "bad") },
    { name: "Protocol", text: ({ protocol }) => protocol },
  ], "None.", ({ request_id: id }) => id),
};

const lifetime = (days) => (days < 7 ? "bad" : days < 30 ? "warn" : "good");

function restart({ name }) {
  const button = el("button", { type: "button", class: "small" }, "Restart");
  button.setAttribute("aria-label", `Restart the pool ${name}`);
  button.addEventListener("click", () => act("pool", { name, order: "restart" }));
  return button;
}

function showTables(state) {
  const reasons = (state.cache?.reasons ?? []).filter(({ result }) => result === "miss" || result === "bypass");
  tables.reasons.update(reasons.sort((one, other) => other.requests - one.requests));
  tables.upstreams.update(state.upstreams.flatMap(({ name: group, peers }) => peers.map((peer) => ({ group, ...peer }))));
  tables.php.update(state.php);
  tables.certificates.update(state.certificates);
  tables.locations.update(state.locations.slice(0, 12));
  tables.slow.update(state.slow);
}

function showConfiguration(state) {
  const { reloads } = state;
  const now = state.unix_ms / 1000;
  const good = `Number ${state.configuration}, in force for ${span(Math.max(0, now - reloads.last_good_s))}. `;
  const count = `${whole(reloads.good)} reloads, ${whole(reloads.failed)} refused.`;
  if ($("reloads").childElementCount === 0) $("reloads").append(el("p"), el("p"));
  const [first, second] = $("reloads").children;
  const left = reloads.watched_until_s - now;
  const watch = left > 0 ? ` Watched for ${span(left)} more: it is taken back if more fails than before.` : "";
  write(first, good + count + watch);
  const fate = reloads.was_taken_back ? "taken back" : "refused";
  const failed = `The last reload was ${fate} ${span(Math.max(0, now - reloads.last_failed_s))} ago:`;
  write(second, reloads.has_failed ? failed : "");
  second.className = "bad";
  const errors = $("errors");
  if (errors.textContent !== reloads.errors.join("")) {
    errors.replaceChildren(...reloads.errors.map((text) => el("li", { class: "code" }, text)));
  }
}

function show(state) {
  const up = span((state.unix_ms - state.started_ms) / 1000);
  write($("facts"), `version ${state.version}, up for ${up}, process ${state.pid}`);
  showTiles(state);
  showTraffic();
  showLatency(state);
  showDoctor(state);
  showCache(state);
  showTables(state);
  showConfiguration(state);
}

// The loop

function mark(text, mood) {
  write($("state"), text);
  $("state").className = `pill ${mood}`;
}

async function look() {
  try {
    const reply = await fetch("status.json", { cache: "no-store", signal: AbortSignal.timeout(10_000) });
    if (!reply.ok) throw new Error(`status ${reply.status}`);
    const state = await reply.json();
    history.push(state);
    if (history.length > REMEMBERED) history.shift();
    show(state);
    mark("live", "good");
  } catch (error) {
    mark(error.name === "TimeoutError" ? "no answer" : "not reached", "bad");
    console.info("the server was not reached:", error.message);
  }
}

async function watch() {
  for (;;) {
    if (!isPaused && !document.hidden) await look();
    await new Promise((done) => setTimeout(done, EVERY));
  }
}

$("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  $("pause").setAttribute("aria-pressed", String(isPaused));
  if (isPaused) mark("paused", "warn");
});

// Actions

function say(text, mood) {
  $("said").className = mood;
  $("said").textContent = text;
}

/** Has the server do something, and says what came of it. */
async function act(action, words) {
  say("…", "");
  try {
    const reply = await fetch(`${action}?${new URLSearchParams(words)}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "Bolide-Console": meta("token") },
    });
    const told = await reply.json();
    say(told.said ?? told.error, reply.ok ? "good" : "bad");
  } catch (error) {
    say(`It is not known whether that was done: ${error.message}`, "bad");
  }
}

/** Answers the question that is open. */
let answer = () => {};

function ask(question, yes) {
  answer(false);
  write($("question"), question);
  write($("yes"), yes);
  const dialog = $("confirm");
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((done) => { answer = done; });
}

// The event comes behind the closing, perhaps when the next question is open already.
$("confirm").addEventListener("close", () => {
  if (!$("confirm").open) answer($("confirm").returnValue === "yes");
});

for (const name of ["url", "tag"]) {
  $(`purge-${name}`).addEventListener("submit", async (event) => {
    event.preventDefault();
    await act("purge", { [name]: $(name).value });
  });
}

$("purge-all").addEventListener("click", async () => {
  const question = "Purge everything that the cache holds? Each page is then fetched anew.";
  if (await ask(question, "Purge everything")) await act("purge", { all: "1" });
});

$("reload").addEventListener("click", async () => {
  if (await ask("Reload the configuration? A faulty one is refused, and this one stays.", "Reload")) {
    await act("reload", {});
  }
});

document.body.classList.toggle("sees", meta("acts") !== "yes");
watch();

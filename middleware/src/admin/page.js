// The admin page: asks the API once a second for what is shown, and draws the buckets as they fill in between.
// Names of clients are whatever clients are called, so they are only ever set as text.
"use strict";

const byId = (id) => document.getElementById(id);
const EVERY_MS = 1000;
const TOKEN = "rl-admin-token";

let token = sessionStorage.getItem(TOKEN) ?? "";
let shown = null; // the client that is shown
let buckets = []; // what is drawn of it

class Refused extends Error {}

async function ask(path, method = "GET", body = undefined) {
  const headers = { authorization: `Bearer ${token}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  const response = await fetch(`/api/${path}`, { method, headers, body: body && JSON.stringify(body), cache: "no-store" });
  if (response.status === 401) throw new Refused("The token is wrong.");
  if (response.status === 204) return null;
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.detail ?? `The answer was ${response.status}.`);
  return answer;
}

function element(name, text = "", kind = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

const time = (ms) => new Date(ms).toLocaleTimeString();

function duration(seconds) {
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= 2 * length) return `${Math.round(seconds / length)} ${unit}`;
  }
  return `${seconds} s`;
}

// A rate without a period is per second.
const rate = (text) => (text === "0" ? "never refilled" : text.includes("/") ? text : `${text}/s`);

// A client's name that shows that client.
function link(client) {
  const button = element("button", client, "client");
  button.type = "button";
  button.addEventListener("click", () => {
    byId("client").value = client;
    lookUp(client);
    byId("client-title").scrollIntoView({ behavior: "smooth" });
  });
  return button;
}

function why(denial) {
  const need = `needs ${denial.cost} of "${denial.policy}", has ${denial.remaining}`;
  const wait = denial.retry_after_s === null ? "waiting does not help" : `wait ${duration(denial.retry_after_s)}`;
  const from = { redis: "", local: ", decided without Redis", memory: ", came back too early" }[denial.source] ?? "";
  return `${need}; ${wait}${from}`;
}

const say = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

// Shows rows, each by a key of its own, and touches only what has changed: a row that stays keeps its focus and what is selected
// in it, and a click on it is not lost. `make` makes a row and `fill` writes into it.
function list(parent, items, { key, make, fill = () => {} }, none = "") {
  const seen = new Map();
  const keys = items.map((item) => {
    const [name, times] = [key(item), (seen.get(key(item)) ?? 0) + 1];
    seen.set(name, times);
    return `${name} ${times}`;
  });
  const focused = document.activeElement;
  const wanted = new Set(keys);
  for (const row of [...parent.children]) if (!wanted.has(row.dataset.key)) row.remove();
  const there = new Map([...parent.children].map((row) => [row.dataset.key, row]));
  let place = parent.firstElementChild;
  items.forEach((item, index) => {
    const row = there.get(keys[index]) ?? make(item);
    row.dataset.key = keys[index];
    if (row === place) place = place.nextElementSibling;
    else parent.insertBefore(row, place);
    fill(row, item);
  });
  // A row that has moved has lost it.
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
  if (!items.length && none) parent.append(element(parent.tagName === "TBODY" ? "tr" : "li", none, "why"));
}

// Denials never change once they are there.
const denials = (named) => ({
  key: JSON.stringify,
  make: (denial) => {
    const row = element("li");
    row.append(`${time(denial.at_ms)} `);
    if (named) row.append(link(denial.client), " ");
    if (denial.route) row.append(`${denial.route} `);
    row.append(element("span", why(denial), "why"));
    return row;
  },
});

function tableRow(...kinds) {
  const row = element("tr");
  row.append(...kinds.map((kind) => element("td", "", kind)));
  return row;
}

const fillCells = (row, texts) => texts.forEach((text, index) => text === null || say(row.children[index], text));

const offenders = {
  key: (row) => JSON.stringify([row.client, row.bucket]),
  make: ({ client, bucket }) => {
    const row = tableRow("", "", "number", "");
    row.firstElementChild.append(bucket === null ? client : link(client));
    return row;
  },
  fill: (row, { bucket, denials, last_ms }) => fillCells(row, [null, bucket ?? "–", denials.toLocaleString(), time(last_ms)]),
};

const rules = { key: (rule) => rule, make: (rule) => element("li", rule) };

const policies = {
  key: (policy) => policy.policy,
  make: () => tableRow("", "number", "", "number", ""),
  fill: (row, { policy, shadow, capacity, rate: refill, cost, on_outage }) =>
    fillCells(row, [policy + (shadow ? " (dry run)" : ""), capacity.toLocaleString(), rate(refill), String(cost), on_outage]),
};

function bucketOf(standing) {
  const known = buckets.find((bucket) => bucket.policy === standing.policy);
  if (known) return known;
  const article = byId("bucket").content.firstElementChild.cloneNode(true);
  const bucket = { policy: standing.policy, article };
  const act = (action, body) => ask(`clients/${encodeURIComponent(shown)}/policies/${standing.policy}/${action}`, "POST", body);
  article.querySelector(".reset").addEventListener("click", () => doing(() => act("reset")));
  article.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    doing(() => act("grant", { tokens: Number(article.querySelector("input").value) }));
  });
  return bucket;
}

function showClient(view) {
  buckets = view.policies.map((standing) => {
    const bucket = bucketOf(standing);
    const own = view.own_limits.includes(standing.policy) ? " (a limit of its own)" : "";
    say(bucket.article.querySelector("h3"), `${standing.policy}: ${standing.capacity}, ${rate(standing.rate)}${own}`);
    bucket.article.classList.toggle("denied", standing.denied);
    // Only whole tokens are told. Where the drawing is less than one ahead of them, it goes on from where it was.
    const drawn = levelNow(bucket);
    const ahead = bucket.standing && drawn >= standing.remaining && drawn < standing.remaining + 1;
    bucket.level = ahead ? drawn : standing.remaining;
    bucket.since = performance.now();
    bucket.standing = standing;
    return bucket;
  });
  list(byId("buckets"), buckets, { key: (bucket) => bucket.policy, make: (bucket) => bucket.article });
  byId("client-denials").hidden = false;
  list(byId("client-denials").querySelector("ol"), view.denials, denials(false), "none that this instance remembers");
}

// A bucket between two answers: it fills at its rate, up to its capacity.
function levelNow(bucket) {
  if (!bucket.standing) return 0;
  const gained = ((performance.now() - bucket.since) / 1000) * bucket.standing.refill_per_s;
  return Math.min(bucket.standing.capacity, bucket.level + gained);
}

function draw() {
  for (const bucket of buckets) {
    const { capacity, reset_after_s, retry_after_s, denied } = bucket.standing;
    const level = levelNow(bucket);
    const meter = bucket.article.querySelector(".meter");
    meter.setAttribute("aria-valuemax", capacity);
    meter.setAttribute("aria-valuenow", Math.floor(level));
    meter.setAttribute("aria-label", `tokens left of ${bucket.policy}`);
    meter.firstElementChild.style.width = capacity > 0 ? `${(100 * level) / capacity}%` : "0";
    const full = reset_after_s === null ? "never fills" : reset_after_s === 0 ? "full" : `full in ${duration(reset_after_s)}`;
    const wait = !denied ? "" : retry_after_s === null ? ", denied for good" : `, denied for ${duration(retry_after_s)}`;
    say(bucket.article.querySelector(".figures"), `${Math.floor(level)} of ${capacity} left, ${full}${wait}`);
  }
  requestAnimationFrame(draw);
}

function showRest([health, top, recent, inForce]) {
  const badge = byId("health");
  const redis = health.breaker === null ? "without Redis" : `Redis: breaker ${health.breaker}`;
  say(badge, health.trouble ? `degraded: ${health.trouble} (${redis})` : `ok, ${redis}`);
  badge.className = `health ${health.status}`;
  list(byId("top"), top, offenders, "nobody yet");
  list(byId("denials"), recent, denials(true), "none yet");
  list(byId("rules"), inForce.rules, rules, "no rules");
  list(byId("policies"), inForce.policies, policies, "no policies");
}

function fault(error) {
  say(byId("fault"), error?.message ?? "");
  byId("fault").hidden = !error;
}

async function refresh() {
  const rest = ask("health").then((health) =>
    // Redis may be gone: what this instance knows itself is shown all the same.
    Promise.all([health, ask("top").catch(() => []), ask("denials"), ask("rules")]));
  showRest(await rest);
  byId("entry").hidden = true;
  byId("rooms").hidden = false;
  const asked = shown;
  if (asked) {
    const view = await ask(`clients/${encodeURIComponent(asked)}`);
    if (asked === shown) showClient(view);
  }
}

// Does something and shows what came of it.
async function doing(something) {
  try {
    await something();
    await refresh();
    fault(null);
  } catch (error) {
    if (error instanceof Refused) {
      sessionStorage.removeItem(TOKEN);
      byId("entry").hidden = false;
      byId("rooms").hidden = true;
      fault(token ? error : null);
      token = "";
    } else {
      fault(error);
    }
  }
}

function lookUp(client) {
  if (client !== shown) {
    buckets = [];
    byId("buckets").replaceChildren();
    byId("client-denials").hidden = true;
  }
  shown = client;
  location.hash = encodeURIComponent(client);
  return doing(async () => {});
}

byId("entry").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value;
  sessionStorage.setItem(TOKEN, token);
  doing(async () => {});
});

byId("lookup").addEventListener("submit", (event) => {
  event.preventDefault();
  lookUp(byId("client").value.trim());
});

async function run() {
  for (;;) {
    if (token && !document.hidden) await doing(async () => {});
    await new Promise((done) => setTimeout(done, EVERY_MS));
  }
}

const named = decodeURIComponent(location.hash.slice(1));
if (named) {
  shown = named;
  byId("client").value = named;
}
byId("entry").hidden = token !== "";
requestAnimationFrame(draw);
run();

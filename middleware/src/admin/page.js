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

function denialRow(denial, named) {
  const row = element("li");
  row.append(`${time(denial.at_ms)} `);
  if (named) row.append(link(denial.client), " ");
  if (denial.route) row.append(`${denial.route} `);
  row.append(element("span", why(denial), "why"));
  return row;
}

function tableRow(cells) {
  const row = element("tr");
  for (const [content, kind] of cells) {
    const cell = element("td", "", kind);
    cell.append(content);
    row.append(cell);
  }
  return row;
}

const replace = (parent, children, none) =>
  parent.replaceChildren(...(children.length ? children : [element(parent.tagName === "TBODY" ? "tr" : "li", none, "why")]));

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
    bucket.article.querySelector("h3").textContent = `${standing.policy}: ${standing.capacity}, ${rate(standing.rate)}${own}`;
    bucket.article.classList.toggle("denied", standing.denied);
    // Only whole tokens are told. Where the drawing is less than one ahead of them, it goes on from where it was.
    const drawn = levelNow(bucket);
    const ahead = bucket.standing && drawn >= standing.remaining && drawn < standing.remaining + 1;
    bucket.level = ahead ? drawn : standing.remaining;
    bucket.since = performance.now();
    bucket.standing = standing;
    return bucket;
  });
  byId("buckets").replaceChildren(...buckets.map((bucket) => bucket.article));
  byId("client-denials").hidden = false;
  replace(byId("client-denials").querySelector("ol"), view.denials.map((denial) => denialRow(denial, false)), "none that this instance remembers");
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
    bucket.article.querySelector(".figures").textContent = `${Math.floor(level)} of ${capacity} left, ${full}${wait}`;
  }
  requestAnimationFrame(draw);
}

function showRest([health, top, denials, rules]) {
  const badge = byId("health");
  const redis = health.breaker === null ? "without Redis" : `Redis: breaker ${health.breaker}`;
  badge.textContent = health.trouble ? `degraded: ${health.trouble} (${redis})` : `ok, ${redis}`;
  badge.className = `health ${health.status}`;
  replace(byId("top"), top.map((row) => tableRow([
    [row.bucket === null ? row.client : link(row.client)], [row.bucket ?? "–"], [row.denials.toLocaleString(), "number"], [time(row.last_ms)],
  ])), "nobody yet");
  replace(byId("denials"), denials.map((denial) => denialRow(denial, true)), "none yet");
  replace(byId("rules"), rules.rules.map((rule) => element("li", rule)), "no rules");
  replace(byId("policies"), rules.policies.map((policy) => tableRow([
    [policy.policy + (policy.shadow ? " (dry run)" : "")], [policy.capacity.toLocaleString(), "number"], [rate(policy.rate)], [String(policy.cost), "number"], [policy.on_outage],
  ])), "no policies");
}

function fault(error) {
  byId("fault").textContent = error?.message ?? "";
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

// The page at /: live figures, the last grades, and a form that grades one program. It asks this service alone, with the
// token of whoever looks. Whatever comes from elsewhere (names, messages, outputs) is put in as text, never as markup.

import { draw, kindOf, mark, mebibytes, named, seconds, shape } from "./chart.js";
import { EXAMPLE, SAMPLES, describe } from "./example.js";

const LOOK_AGAIN_MS = 2000;
const TOKEN = "rkgrade-token";
const MOST_ROWS = 500;

const find = (id) => document.getElementById(id);

/** An HTML element: attributes by their names, children as nodes or as text. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}

const pill = (verdict, more = "") => make("span", { class: `pill ${kindOf(verdict)} ${more}` }, verdict.replaceAll("_", " "));

// Asking.

class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail ?? `the service answers ${status}`);
    this.status = status;
    this.problem = problem;
  }
}

async function ask(path, options = {}) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...options.headers, ...(token && { Authorization: `Bearer ${token}` }) };
  const answer = await fetch(path, { ...options, headers, cache: "no-store", redirect: "error", credentials: "omit" });
  if (answer.ok) return answer.json();
  const problem = await answer.json().catch(() => ({}));
  if (answer.status === 401) closeDoor(token !== null);
  throw new Refused(answer.status, problem);
}

// The door.

function closeDoor(wasRefused) {
  sessionStorage.removeItem(TOKEN);
  find("inside").hidden = find("forget").hidden = true;
  find("door").hidden = false;
  find("door-error").hidden = !wasRefused;
  find("door-error").textContent = "This token is not good here.";
  tellReady("locked", "");
}

find("door-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, find("token").value.trim());
  find("token").value = "";
  enter();
});

find("forget").addEventListener("click", () => closeDoor(false));

async function enter() {
  try {
    const [report, languages] = await Promise.all([ask("/status"), ask("/languages")]);
    find("door").hidden = true;
    find("inside").hidden = false;
    find("forget").hidden = sessionStorage.getItem(TOKEN) === null;
    showLanguages(languages);
    showStatus(report);
  } catch (error) {
    if (error.status !== 401) tellReady("out of reach", "bad");
  }
}

// Live.

function tellReady(words, kind) {
  find("ready").textContent = words;
  find("ready").className = `pill ${kind}`;
}

function showStatus(report) {
  find("version").textContent = report.version;
  tellReady(report.ready ? "ready" : "not ready", report.ready ? "ok" : "bad");
  find("reasons").hidden = report.ready;
  find("reasons").textContent = report.reasons.join("; ");
  const { workers, queue, verdict_cache: cache } = report;
  find("busy").textContent = workers.busy;
  find("alive").textContent = workers.alive;
  find("workers").replaceChildren(
    ...Array.from({ length: Math.min(workers.alive, 64) }, (_, index) => make("i", { class: index < workers.busy ? "busy" : "" })),
  );
  find("waiting").textContent = queue.length;
  find("room").textContent = queue.size;
  find("fill").style.width = `${Math.min(100, (100 * queue.length) / queue.size)}%`;
  find("age").textContent = queue.length ? seconds(queue.age_s) : "–";
  find("known").textContent = cache.hits;
  find("asked").textContent = cache.hits + cache.misses;
  showRecent(report.grades, new Date(report.now));
}

function ago(then, now) {
  const s = Math.max(0, Math.round((now - new Date(then)) / 1000));
  if (s < 60) return `${s} s ago`;
  return s < 3600 ? `${Math.floor(s / 60)} min ago` : `${Math.floor(s / 3600)} h ago`;
}

function showRecent(grades, now) {
  find("none").hidden = grades.length > 0;
  const head = ["When", "Verdict", "Tests", "Language", "Run", "Waited", "Client", "Id", "Problem"];
  const row = (grade) => {
    const total = Object.values(grade.tests).reduce((sum, count) => sum + count, 0);
    const problem = make("button", { class: "mono", title: `${grade.problem_id}: grade on it` }, grade.problem_id.slice(7, 15));
    problem.addEventListener("click", () => useStored(grade.problem_id));
    return make(
      "tr",
      {},
      make("td", {}, ago(grade.at, now)),
      make("td", {}, pill(grade.verdict)),
      make("td", {}, `${grade.tests.accepted ?? 0} of ${total}`),
      make("td", {}, grade.language),
      make("td", {}, seconds(grade.run_s)),
      make("td", {}, seconds(grade.queue_s)),
      make("td", { class: "cut" }, grade.client ?? "–"),
      make("td", { class: "cut" }, grade.id ?? "–"),
      make("td", {}, problem),
    );
  };
  fill(find("recent"), grades.length ? head : [], grades.map(row));
}

function fill(table, head, rows) {
  const headings = head.map((words) => make("th", { scope: "col" }, words));
  table.replaceChildren(make("thead", {}, make("tr", {}, ...headings)), make("tbody", {}, ...rows));
}

function useStored(id) {
  find("form").elements.from.value = "stored";
  showFrom();
  find("stored").value = id;
  find("try").focus();
  find("try").scrollIntoView();
}

const factors = new Map();

function showLanguages(languages) {
  find("count").textContent = languages.length;
  find("names").textContent = languages.map((one) => one.id).join(", ");
  find("names").title = find("names").textContent;
  const chosen = find("language").value;
  find("language").replaceChildren(...languages.map((one) => make("option", { value: one.id }, one.id)));
  if (languages.some((one) => one.id === chosen)) find("language").value = chosen;
  for (const one of languages) factors.set(one.id, one.time_factor);
  find("samples").hidden = !factors.has("python");
  find("languages").replaceChildren(
    ...languages.map((one) =>
      make(
        "li",
        { title: one.version },
        make("b", {}, one.id),
        one.time_factor === 1 ? "" : ` (${one.time_factor} × the time)`,
        make("span", { class: "soft" }, one.version),
        make("span", { class: "soft" }, one.aliases.length ? `also ${one.aliases.join(", ")}` : ""),
      ),
    ),
  );
}

// The form.

const from = () => find("form").elements.from.value;

function showFrom() {
  for (const part of document.querySelectorAll("[data-from]")) part.hidden = part.dataset.from !== from();
}

function useSample(name) {
  find("source").value = SAMPLES[name];
  if (factors.has("python")) find("language").value = "python";
}

for (const radio of find("form").elements.from) radio.addEventListener("change", showFrom);
for (const button of document.querySelectorAll("[data-sample]")) {
  button.addEventListener("click", () => useSample(button.dataset.sample));
}

function problemAsked() {
  if (from() === "stored") return find("stored").value.trim();
  if (from() === "example") return EXAMPLE;
  try {
    return JSON.parse(find("pasted").value);
  } catch (error) {
    throw new Refused(0, { detail: `the problem is no JSON: ${error.message}` });
  }
}

let underWay = null;

find("cancel").addEventListener("click", () => underWay?.abort());

find("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  find("intro").hidden = find("error").hidden = find("result").hidden = true;
  find("grade").disabled = true;
  find("cancel").hidden = false;
  underWay = new AbortController();
  const begun = performance.now();
  const tell = () => {
    find("progress").textContent = `Grading, ${((performance.now() - begun) / 1000).toFixed(1)} s …`;
  };
  find("progress").hidden = false;
  tell();
  const clock = setInterval(tell, 100);
  try {
    const request = {
      problem: problemAsked(),
      language: find("language").value,
      source: find("source").value,
      stop: find("stop").checked ? "first_failure" : "never",
      detail: find("outputs").checked ? "outputs" : "verdicts",
      fresh: find("fresh").checked,
    };
    const body = JSON.stringify(request);
    const sent = { method: "POST", body, headers: { "Content-Type": "application/json" }, signal: underWay.signal };
    const result = await ask("/grade", sent);
    const { limits } = await ask(`/problems/${result.problem_id}`);
    const factor = factors.get(result.language) ?? 1;
    showResult(result, { cpu_s: limits.cpu_s * factor, memory_bytes: limits.memory_mb * 2 ** 20 });
  } catch (error) {
    showError(error);
  } finally {
    clearInterval(clock);
    find("progress").hidden = true;
    find("grade").disabled = false;
    find("cancel").hidden = true;
    underWay = null;
    look();
  }
});

function showError(error) {
  const { problem } = error;
  let words = error.message;
  if (error.name === "AbortError") words = "Cancelled; the grader has been told.";
  else if (!problem) words = `The service is out of reach: ${error.message}`;
  const title = problem?.title ? [make("b", {}, problem.title), make("br")] : [];
  const several = problem?.errors?.length > 1 ? problem.errors : [];
  find("error").replaceChildren(
    ...title,
    words,
    make("ul", {}, ...several.map((one) => make("li", {}, `${one.field ?? "the whole"}: ${one.detail}`))),
  );
  find("error").hidden = false;
  find("outcome-title").scrollIntoView({ block: "nearest" });
}

// What it came to.

const CATEGORIES = {
  correct: "Right at every size.",
  optimization_failure: "An optimization failure: it is right as far as it goes, and then takes too much.",
  correctness_failure: "A correctness failure: it gives a wrong answer, or breaks.",
  format_error: "No program was found.",
};

function sentence(result) {
  const first = result.first_failure_length;
  const where = first === null ? "" : ` The first failure is at input length ${first.toLocaleString("en")}.`;
  if (result.category === null) return "The grader itself failed, so there is no reward either way.";
  if (result.verdict === "compile_error") return "It does not compile.";
  return CATEGORIES[result.category] + where;
}

function grown(fit, what) {
  if (!fit) return "";
  const [low, high] = [fit.exponent_low, fit.exponent_high].map((bound) => bound?.toFixed(2));
  const how =
    fit.model === "power"
      ? `grows with the input length to the power of ${fit.exponent.toFixed(2)} (${low} to ${high})`
      : `doubles whenever the input is longer by ${+fit.doubling_length.toPrecision(2)}`;
  const met = fit.limit_length;
  return `${what} ${how}${met === null ? "" : ` and meets its limit at about ${(+met.toPrecision(2)).toLocaleString("en")}`}. `;
}

let redraw = () => {};

function showResult(result, limits) {
  const { timing, grader } = result;
  find("summary").replaceChildren(
    pill(result.verdict, "large"),
    ...(result.category ? [make("span", { class: "soft" }, result.category.replaceAll("_", " "))] : []),
    make("span", { class: "soft" }, `${seconds(timing.total_s)} in all: ${seconds(timing.queue_s)} queued, ${seconds(timing.compile_s)} compiling, ${seconds(timing.run_s)} running`),
    ...(timing.cached ? [make("span", { class: "soft" }, "known from an earlier run")] : []),
    ...(grader.secure ? [] : [make("span", { class: "pill bad" }, "insecure: no control groups")]),
  );
  find("sentence").textContent = sentence(result);
  find("growth").hidden = !result.growth;
  find("growth").textContent = grown(result.growth?.cpu, "CPU time") + grown(result.growth?.memory, "Memory");
  find("compiler").hidden = !result.compile?.message;
  find("compiler").textContent = result.compile?.message ?? "";
  find("picked").hidden = true;
  find("json").textContent = JSON.stringify(result, null, 2);
  find("result").hidden = false;
  let picked = result.tests.find((test) => test.input_length === result.first_failure_length && test.verdict !== "accepted") ?? null;
  const pick = (test) => {
    picked = test;
    showTest(test);
    redraw();
  };
  redraw = () => draw(find("chart"), result, limits, picked?.index, pick);
  redraw();
  if (picked) showTest(picked);
  showLegend(result.tests);
  showTests(result.tests, pick);
  if (window.innerWidth <= 1000) find("outcome").scrollIntoView();
  find("outcome").focus({ preventScroll: true });
}

new ResizeObserver(() => redraw()).observe(find("outcome"));

function icon(verdict) {
  const svg = shape("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" });
  svg.append(mark(kindOf(verdict), 8, 8));
  return svg;
}

function showLegend(tests) {
  const counts = new Map();
  for (const { verdict } of tests) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  const rows = [...counts].map(([verdict, count]) => make("span", {}, icon(verdict), `${count} ${verdict.replaceAll("_", " ")}`));
  find("legend").replaceChildren(...rows);
}

function showTest(test) {
  const ended = test.signal !== null ? `died of signal ${test.signal}` : test.exit_code !== null ? `exit status ${test.exit_code}` : "";
  const figures = [
    `input length ${test.input_length.toLocaleString("en")}`,
    `CPU ${seconds(test.cpu_s)}`,
    `wall ${seconds(test.wall_s)}`,
    mebibytes(test.memory_bytes),
    ended,
    test.reruns ? `run again ${test.reruns === 1 ? "once" : `${test.reruns} times`}, as others had its core` : "",
  ];
  const outputs = [
    ["stdout ends with", test.stdout_tail],
    ["stderr ends with", test.stderr_tail],
    ["The checker said", test.checker_message],
  ];
  find("picked").replaceChildren(
    make("h3", {}, named(test), pill(test.verdict)),
    make("p", { class: "soft" }, figures.filter(Boolean).join(" · ")),
    test.message ? make("p", {}, test.message) : "",
    ...outputs.filter(([, text]) => text).flatMap(([title, text]) => [make("p", { class: "soft" }, title), make("pre", {}, text)]),
  );
  find("picked").hidden = false;
}

function showTests(tests, pick) {
  const row = (test) => {
    const button = make("button", { type: "button" }, named(test));
    button.addEventListener("click", () => {
      pick(test);
      find("picked").scrollIntoView({ block: "nearest" });
    });
    return make(
      "tr",
      {},
      make("td", { class: "cut" }, button),
      make("td", { class: "number" }, test.input_length.toLocaleString("en")),
      make("td", {}, pill(test.verdict)),
      make("td", { class: "number" }, seconds(test.cpu_s)),
      make("td", { class: "number" }, seconds(test.wall_s)),
      make("td", { class: "number" }, mebibytes(test.memory_bytes)),
      make("td", { class: "cut message", title: test.message }, test.message),
    );
  };
  const shown = tests.slice(0, MOST_ROWS).map(row);
  if (tests.length > MOST_ROWS) {
    shown.push(make("tr", {}, make("td", { colspan: "7", class: "soft" }, `and ${tests.length - MOST_ROWS} more, in the JSON`)));
  }
  fill(find("tests"), ["Test", "Input length", "Verdict", "CPU", "Wall", "Memory", "Message"], shown);
}

// Looking again, while somebody looks.

async function look() {
  if (document.hidden || find("inside").hidden) return;
  try {
    showStatus(await ask("/status"));
  } catch (error) {
    if (error.status !== 401) tellReady("out of reach", "bad");
  }
}

setInterval(look, LOOK_AGAIN_MS);
document.addEventListener("visibilitychange", look);

for (const term of document.querySelectorAll("[data-mark]")) term.append(icon(term.dataset.mark));
find("example-tests").textContent = describe();
find("pasted").value = JSON.stringify({ kind: "stdio", tests: [{ input: "1 2\n", output: "3\n" }], limits: { cpu_s: 1.0, memory_mb: 256 } }, null, 2);
useSample("slow");
showFrom();
enter();

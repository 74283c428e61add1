// The chart of one grade: R_k as a step along the input length, and below it the CPU time and the memory of each test
// against their limits, all on log scales. Text becomes text nodes and nothing else, whoever wrote it.

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 64;
const RIGHT = 14;
const MIB = 2 ** 20;

/** An SVG element with attributes and, if given, its text. */
export function shape(name, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  return element;
}

const KINDS = {
  accepted: "ok",
  wrong_answer: "bad",
  runtime_error: "bad",
  compile_error: "bad",
  format_error: "bad",
  time_limit: "limit",
  memory_limit: "limit",
  output_limit: "limit",
  idle: "limit",
  checker_error: "fault",
  internal_error: "fault",
};

/** What a verdict says of whom: ok, bad (the program is wrong), limit (too slow or too large), fault (ours), none. */
export function kindOf(verdict) {
  return Object.hasOwn(KINDS, verdict) ? KINDS[verdict] : "none";
}

/** The mark of a verdict: told apart by its form, and by its colour. */
export function mark(kind, x, y) {
  const r = 4.5;
  const at = { class: `mark ${kind}` };
  switch (kind) {
    case "bad":
      return shape("path", { ...at, d: `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}` });
    case "limit":
      return shape("path", { ...at, d: `M${x} ${y - r - 1}L${x + r + 1} ${y + r}L${x - r - 1} ${y + r}Z` });
    case "fault":
      return shape("path", { ...at, d: `M${x} ${y - r - 1}L${x + r + 1} ${y}L${x} ${y + r + 1}L${x - r - 1} ${y}Z` });
    case "none":
      return shape("path", { ...at, d: `M${x - r} ${y}L${x + r} ${y}` });
    default:
      return shape("circle", { ...at, cx: x, cy: y, r });
  }
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  return value < 1 ? `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms` : `${value.toFixed(value < 10 ? 2 : 1)} s`;
}

export function mebibytes(value) {
  return value === null || value === undefined ? "–" : `${(value / MIB).toFixed(value < 100 * MIB ? 1 : 0)} MiB`;
}

const SHORT = ["1", "10", "100", "1k", "10k", "100k", "1M", "10M", "100M", "1G"];

/**
 * Draw `result` (a GradeResult) into `place`, as wide as that is. `limits`: {cpu_s, memory_bytes}, as they held.
 * `pick` is called with the test that was clicked; `picked` is the index of the one to be ringed.
 */
export function draw(place, result, limits, picked, pick) {
  const width = Math.max(300, place.clientWidth);
  const decades = Math.max(1, result.groups.length);
  const low = result.tests.some((test) => test.input_length < 1) ? -0.3 : 0;
  const last = width - RIGHT - 58;
  const across = (length) => {
    const exponent = length < 1 ? low : Math.log10(length);
    return LEFT + ((exponent - low) / (decades - low)) * (last - LEFT);
  };
  const top = 52;
  const panels = [
    panel(result.tests, (test) => test.cpu_s, limits.cpu_s, 1e-3, seconds, "CPU time", top + 44, 170),
    panel(result.tests, (test) => test.memory_bytes, limits.memory_bytes, MIB / 4, mebibytes, "Peak memory", top + 258, 120),
  ];
  const bottom = top + 258 + 120;
  const height = bottom + 42;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": told(result) });

  steps(svg, result, across, last, top);
  for (let k = 0; k <= decades; k += 1) {
    const x = across(10 ** k);
    svg.append(shape("line", { class: "grid", x1: x, x2: x, y1: top, y2: bottom }));
    if (decades < 8 || k % 2 === 0) {
      svg.append(shape("text", { x, y: bottom + 17, "text-anchor": "middle" }, SHORT[k] ?? `10^${k}`));
    }
  }
  svg.append(shape("text", { class: "title", x: (LEFT + last) / 2, y: bottom + 36, "text-anchor": "middle" }, "Input length (log scale)"));
  if (result.first_failure_length !== null) {
    const x = across(result.first_failure_length);
    svg.append(shape("line", { class: "first", x1: x, x2: x, y1: top, y2: bottom }));
    svg.append(shape("text", { class: "first", x: x - 6, y: top + 14, "text-anchor": "end" }, "first failure"));
  }
  for (const one of panels) {
    axis(svg, one, last);
    // The failures last, so that they lie on top.
    const order = [...result.tests].sort((a, b) => (b.verdict === "accepted") - (a.verdict === "accepted"));
    for (const test of order) {
      const x = across(test.input_length);
      const y = one.up(one.value(test));
      const target = shape("circle", { class: "hit", cx: x, cy: y, r: 9 });
      target.append(shape("title", {}, `${named(test)}: ${test.verdict}, ${one.format(one.value(test))}`));
      target.addEventListener("click", () => pick(test));
      svg.append(mark(kindOf(test.verdict), x, y));
      if (test.index === picked) svg.append(shape("circle", { class: "halo", cx: x, cy: y, r: 10 }));
      svg.append(target);
    }
  }
  place.replaceChildren(svg);
}

export function named(test) {
  return test.name === null ? `test ${test.index}` : `test ${test.index} (${test.name})`;
}

function told(result) {
  const passed = result.tests.filter((test) => test.verdict === "accepted").length;
  const rewards = Object.entries(result.rewards).map(([name, reward]) => `${name} is ${reward ?? "empty"}`);
  return `${passed} of ${result.tests.length} tests accepted along the input length. ${rewards.join(", ")}. The table below has each test.`;
}

/** R_k: up where every test shorter than 10^k is accepted; a step down where that ends. */
function steps(svg, result, across, last, top) {
  const [high, lowest] = [10, top - 8];
  const level = (reward) => (reward === 1 ? high : lowest);
  const colour = (reward) => (reward === 1 ? "earned" : reward === 0 ? "lost" : "void");
  const cells = result.groups.map(({ k }) => [result.rewards[`R_${k}`], across(k === 1 ? 0 : 10 ** (k - 1)), across(10 ** k), k]);
  const begin = last + 10;
  let path = "";
  for (const [reward, from, to, k] of [...cells, [result.rewards.R_inf, begin, begin + 58, "∞"]]) {
    svg.append(shape("rect", { class: colour(reward), x: from, y: high, width: Math.max(0, to - from), height: lowest - high }));
    const label = `R${below(k)} = ${reward ?? "–"}`;
    const short = to - from < 46 ? String(reward ?? "–") : label;
    svg.append(shape("text", { class: colour(reward), x: (from + to) / 2, y: (high + lowest) / 2 + 4, "text-anchor": "middle" }, short));
    if (k !== "∞" && reward !== null && reward !== undefined) path += `${path ? "L" : "M"}${from} ${level(reward)}L${to} ${level(reward)}`;
  }
  svg.append(shape("path", { class: "step", d: path || "M0 0" }));
  svg.append(shape("text", { class: "title", x: 0, y: (high + lowest) / 2 + 4 }, "Reward"));
}

function below(k) {
  return k === "∞" ? "∞" : String(k).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
}

function panel(tests, value, limit, least, format, title, top, height) {
  const values = tests.map(value).filter((one) => one !== null && one > 0);
  const most = Math.max(limit * 1.6, ...values.map((one) => one * 1.15));
  const floor = Math.min(least, ...values.map((one) => one / 1.3));
  const span = Math.log(most / floor);
  // What did not run lies on the floor.
  const up = (one) => top + height - (Math.log(Math.max(one ?? 0, floor) / floor) / span) * height;
  return { value, limit, floor, most, format, title, top, height, up };
}

function axis(svg, { limit, floor, most, format, title, top, height, up }, last) {
  const bound = up(limit);
  svg.append(shape("rect", { class: "beyond", x: LEFT, y: top, width: last - LEFT, height: bound - top }));
  const unit = format === mebibytes ? MIB : 1;
  for (let exponent = Math.ceil(Math.log10(floor / unit)); 10 ** exponent * unit <= most; exponent += 1) {
    const y = up(10 ** exponent * unit);
    svg.append(shape("line", { class: "grid", x1: LEFT, x2: last, y1: y, y2: y }));
    svg.append(shape("text", { x: LEFT - 8, y: y + 4, "text-anchor": "end" }, tick(10 ** exponent, unit)));
  }
  svg.append(shape("line", { class: "bound", x1: LEFT, x2: last, y1: bound, y2: bound }));
  svg.append(shape("text", { class: "bound", x: last + 6, y: bound - 3 }, "limit"));
  svg.append(shape("text", { class: "bound", x: last + 6, y: bound + 11 }, format === mebibytes ? `${limit / MIB} MiB` : `${+limit.toFixed(3)} s`));
  svg.append(shape("line", { class: "frame", x1: LEFT, x2: LEFT, y1: top, y2: top + height }));
  svg.append(shape("line", { class: "frame", x1: LEFT, x2: last, y1: top + height, y2: top + height }));
  svg.append(shape("text", { class: "title", x: 0, y: top - 12 }, `${title} (log scale)`));
}

function tick(value, unit) {
  if (unit === MIB) return `${value.toLocaleString("en")} MiB`;
  return value < 1 ? `${+(value * 1000).toPrecision(1)} ms` : `${value} s`;
}

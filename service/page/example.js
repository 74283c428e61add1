// The problem that the form offers, made here: count the pairs of numbers that add up to a target. Three programs for it:
// one right, one right but quadratic, one that goes wrong where numbers repeat.

// How many numbers, and how large they may be: a few tests for each power of ten of the input length.
const SIZES = [
  [1, 5], [4, 9], [12, 30], [20, 60], [90, 100], [180, 500], [900, 900], [1800, 3000], [9000, 50000], [14000, 90000],
];

const LIMITS = { cpu_s: 1.0, memory_mb: 256 };

function test([count, largest], index) {
  // The minimal standard generator of Park and Miller: the same tests for everybody.
  let state = 48271 * (index + 1);
  const draw = (bound) => {
    state = (state * 48271) % 2147483647;
    return state % bound;
  };
  const numbers = Array.from({ length: count }, () => 1 + draw(largest));
  const target = largest + (largest % 2);
  const seen = new Map();
  let pairs = 0;
  for (const number of numbers) {
    pairs += seen.get(target - number) ?? 0;
    seen.set(number, (seen.get(number) ?? 0) + 1);
  }
  return { name: `${count} numbers`, input: `${count} ${target}\n${numbers.join(" ")}\n`, output: `${pairs}\n` };
}

export const EXAMPLE = { kind: "stdio", tests: SIZES.map(test), limits: LIMITS };

/** How many tests there are, and of which sizes. */
export function describe() {
  const lengths = EXAMPLE.tests.map((one) => one.input.length);
  return `${lengths.length} tests of ${Math.min(...lengths)} to ${Math.max(...lengths).toLocaleString("en")} bytes`;
}

export const SAMPLES = {
  right: `n, target = map(int, input().split())
seen = {}
pairs = 0
for x in map(int, input().split()):
    pairs += seen.get(target - x, 0)
    seen[x] = seen.get(x, 0) + 1
print(pairs)
`,
  slow: `n, target = map(int, input().split())
numbers = list(map(int, input().split()))
pairs = 0
for i in range(n):
    for j in range(i):
        pairs += numbers[i] + numbers[j] == target
print(pairs)
`,
  wrong: `n, target = map(int, input().split())
seen = set()
pairs = 0
for x in map(int, input().split()):
    pairs += target - x in seen  # once, however often it has been seen
    seen.add(x)
print(pairs)
`,
};

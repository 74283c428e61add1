"""A frontier as one HTML file that needs nothing else: figures, tables, and every problem to be unfolded.

What models said, and what problems and runs are called, is text to a browser and nothing more: all of it is escaped,
and the page's own policy forbids scripts and whatever lies elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from rl_client.counts import counted
from rl_client.evaluate.report import CATEGORIES, ProblemCounts
from rl_client.evaluate.statistics import Estimate
from rl_client.frontier.examples import Example
from rl_client.frontier.figures import COLOURS
from rl_client.frontier.findings import Findings, explained

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1c1c22; background: #fff; max-width: 66rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
figure { margin: 1rem 0; } figure svg { width: 100%; height: auto; max-width: 46rem; }
figcaption, .note { color: #55555f; font-size: .9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #e3e3e8; white-space: nowrap; }
th:first-child, td:first-child, .verdicts { text-align: left; }
.problem th, .verdicts { white-space: normal; }
details { border-bottom: 1px solid #e3e3e8; } details details { border: 0; margin-left: 1rem; }
summary { cursor: pointer; padding: .3rem 0; overflow-wrap: anywhere; }
.bar { display: inline-flex; width: 9rem; height: .8rem; vertical-align: middle; margin-right: .6rem; }
pre { background: #f6f6f8; padding: .6rem; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere;
  max-height: 24rem; }
"""

_CAPTIONS = {
    "frontier": "Optimization failures against correctness failures; lower left is better.",
    "categories": "What became of samples, along alpha.",
    "format": "Format errors, by how far alpha is from 0.",
}

_WORDS = {name: name.replace("_", " ") for name in CATEGORIES}


def page(findings: Findings, figures: Mapping[str, str], examples: Sequence[Mapping[tuple[str, str], Example]]) -> str:
    """`figures`: SVG texts by name. `examples`: of each run, in the grid's order."""
    return "\n".join(_parts(findings, figures, examples))


def _parts(
    findings: Findings, figures: Mapping[str, str], examples: Sequence[Mapping[tuple[str, str], Example]]
) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield (
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'\">"
    )
    yield '<meta name="viewport" content="width=device-width">'
    yield f"<title>Frontier of checkpoints</title><style>{_STYLE}</style></head><body><main>"
    runs, problems = findings.grid.runs, findings.grid.counts
    yield f"<h1>Frontier of {counted(len(runs), 'checkpoint')} on {counted(len(problems), 'problem')}</h1>"
    for test in findings.tests:
        yield f'<p class="finding">{escape(test.words)}</p>'
    yield f'<p class="note">{escape(explained())}</p>'
    for name, svg in figures.items():
        caption = escape(_CAPTIONS[name])
        named = svg.replace("<svg ", f'<svg role="img" aria-label="{caption}" ', 1)
        yield f"<figure>{named}<figcaption>{caption}</figcaption></figure>"
    yield "<h2>Rates</h2>"
    yield from _rates(findings)
    yield "<h2>Problems</h2>"
    yield '<p class="note">Of each: how often it is solved, how it fails, and a sample of each checkpoint.</p>'
    for row in problems:
        yield from _problem(findings, row, [one.get((row[0].key, row[0].problem_id)) for one in examples])
    yield "</main></body></html>"


def _rates(findings: Findings) -> Iterator[str]:
    heads = "".join(f"<th>{words}</th>" for words in ("checkpoint", "alpha", "samples", *_WORDS.values()))
    yield f'<div class="scroll"><table id="rates"><thead><tr>{heads}</tr></thead><tbody>'
    for number, (run, rates) in enumerate(zip(findings.grid.runs, findings.rates, strict=True)):
        samples = sum(row[number].graded for row in findings.grid.counts)
        alpha = "" if run.named.alpha is None else f"{run.named.alpha:g}"
        name = escape(run.named.name) + (" (trained)" if number in findings.grid.trained else "")
        cells = (name, alpha, f"{samples:,}", *(_shown(rates[category]) for category in CATEGORIES))
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    yield "</tbody></table></div>"


def _problem(findings: Findings, row: Sequence[ProblemCounts], examples: Sequence[Example | None]) -> Iterator[str]:
    first = row[0]
    counts = {name: sum(one.categories[name] for one in row) for name in CATEGORIES}
    difficulty = f" ({escape(first.difficulty)})" if first.difficulty else ""
    share = counts["correct"] / sum(counts.values())
    yield f'<details class="problem"><summary>{_bar(counts)}{escape(first.key)}{difficulty}: {share:.1%}</summary>'
    heads = "".join(f"<th>{words}</th>" for words in ("checkpoint", "", *_WORDS.values()))
    heads += '<th class="verdicts">verdicts</th>'
    yield f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>'
    for run, one in zip(findings.grid.runs, row, strict=True):
        of_each = (f"{name.replace('_', ' ')} {count}" for name, count in sorted(one.verdicts.items()))
        verdicts = ", ".join(text.replace(" ", "\N{NO-BREAK SPACE}") for text in of_each)
        cells = (
            escape(run.named.name),
            _bar(one.categories),
            *(str(one.categories[name]) for name in CATEGORIES),
        )
        last = f'<td class="verdicts">{escape(verdicts)}</td>'
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + f"{last}</tr>"
    yield "</tbody></table></div>"
    for run, example in zip(findings.grid.runs, examples, strict=True):
        if example is not None:
            told = ", ".join(filter(None, [_WORDS.get(example.category or "", ""), example.told]))
            yield f"<details><summary>{escape(run.named.name)}, sample {example.sample}: {escape(told)}</summary>"
            before = f"[{example.left_out:,} characters before]\n" if example.left_out else ""
            # A browser drops a line end that a pre begins with.
            yield f"<pre>\n{before}{escape(example.text)}</pre></details>"
    yield "</details>"


def _bar(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    parts = "".join(
        f'<span style="width:{100 * counts[name] / total:.2f}%;background:{COLOURS[name]}"></span>'
        for name in CATEGORIES
        if counts[name]
    )
    return f'<span class="bar" aria-hidden="true">{parts}</span>'


def _shown(rate: Estimate) -> str:
    if rate.mean is None:
        return ""
    if rate.low is None or rate.high is None:
        return f"{rate.mean:.3f}"
    return f"{rate.mean:.3f} [{rate.low:.3f}, {rate.high:.3f}]"

#!/usr/bin/env python3
"""Trains on 1, 2, 4 and 8 devices with as many rows on each, by three rules for the learning rate, and draws docs/batch_size.svg.

Usage: batch_size.py measure [PROGRAM]   runs PROGRAM (build/release/bin/brigade) and writes docs/batch_size.json
       batch_size.py draw [JSON [SVG]]   draws docs/batch_size.svg from it, and prints the table of docs/batch_size.md
"""
import json
import statistics
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs/batch_size.json"
PICTURE = ROOT / "docs/batch_size.svg"

DEVICES = (1, 2, 4, 8)
SEEDS = (0, 1, 2)
COMMON = ["--model", "mlp", "--epochs", "2", "--per-device-batch", "64", "--lr", "0.02"]
RULES = {
    "fixed rate": ["--scale-lr", "none", "--warmup", "0"],
    "linear": ["--scale-lr", "linear", "--warmup", "0"],
    "linear with warm-up": ["--scale-lr", "linear", "--warmup", "50"],
}

# Of the picture, in its own units.
WIDTH, HEIGHT = 880, 440
LEFT, RIGHT, TOP, BOTTOM = 86, 690, 84, 372
LABEL_DISTANCE = 20
CLASSES = {"fixed rate": "fixed", "linear": "linear", "linear with warm-up": "warm"}

STYLE = """
    .paper { fill: #fbfaf7 } .grid { stroke: #e4e1da } .text { fill: #5d6570 } .title { fill: #1a1d21 }
    .fixed { color: #6b5b95 } .linear { color: #b4540a } .warm { color: #0b5cad }
    .line { stroke: currentColor; fill: none; stroke-width: 2; stroke-linejoin: round }
    .spread { stroke: currentColor; stroke-width: 1.5; opacity: 0.55 }
    .dot, .label { fill: currentColor }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #15181c } .grid { stroke: #2c3138 } .text { fill: #a3abb5 } .title { fill: #e8eaed }
      .fixed { color: #b9a8e6 } .linear { color: #f0a35e } .warm { color: #6cb0f5 }
    }"""


def run(program, rule, devices, seed):
    """The accuracy of one run; None where its loss became NaN or infinite."""
    command = [program, "train", "--json", *COMMON, *RULES[rule], "--devices", str(devices), "--seed", str(seed)]
    ran = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    if ran.returncode == 4:
        return {"rule": rule, "devices": devices, "seed": seed, "test_accuracy": None}
    if ran.returncode != 0:
        sys.exit(f"batch_size: {' '.join(map(str, command))} ended with {ran.returncode}: {ran.stderr}")
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    return {
        "rule": rule, "devices": devices, "seed": seed, "test_accuracy": events[-1]["test_accuracy"],
        "global_batch": events[0]["global_batch"], "steps": events[-1]["steps"],
        "learning_rate": events[0]["learning_rate"],
    }


def measure(program):
    runs = [run(program, rule, devices, seed) for rule in RULES for devices in DEVICES for seed in SEEDS]
    RESULTS.write_text(json.dumps({"options": COMMON, "runs": runs}, indent=1) + "\n", encoding="utf-8")


def curves(runs):
    """{rule: [(devices, [accuracy of each seed])]}; a run that failed has guessed, of ten classes."""
    found = {}
    for one in runs:
        accuracy = 0.1 if one["test_accuracy"] is None else one["test_accuracy"]
        found.setdefault(one["rule"], {}).setdefault(one["devices"], []).append(accuracy)
    return {rule: sorted(points.items()) for rule, points in found.items()}


def apart(heights):
    """The heights of labels, from the top, moved down where they would overlap."""
    moved = []
    for height in heights:
        moved.append(max([height] + [above + LABEL_DISTANCE for above in moved[-1:]]))
    return moved


def picture(found, rows_each):
    devices = [count for count, _ in next(iter(found.values()))]
    accuracies = [value for points in found.values() for _, values in points for value in values]
    low = int(min(accuracies) * 50) / 50
    high = (int(max(accuracies) * 50) + 1) / 50

    def x(count):
        return LEFT + (RIGHT - LEFT) * devices.index(count) / (len(devices) - 1)

    def y(accuracy):
        return BOTTOM - (BOTTOM - TOP) * (accuracy - low) / (high - low)

    def text(x_at, y_at, words, anchor="middle"):
        return f'  <text class="text" x="{x_at:.1f}" y="{y_at:.1f}" font-size="13" text-anchor="{anchor}">{escape(words)}</text>'

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="Helvetica, Arial, sans-serif" role="img" aria-labelledby="t d">',
        '  <title id="t">Test accuracy against the number of devices, by rule for the learning rate</title>',
        f'  <desc id="d">One line for each of: {", ".join(found)}. Bars reach from the worst to the best of the seeds.</desc>',
        f"  <style>{STYLE}\n  </style>",
        f'  <rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        f'  <text class="title" x="{LEFT}" y="34" font-size="18">Test accuracy after the same passes over the data</text>',
        text(LEFT, 58, f"brigade train {' '.join(COMMON)}", "start"),
    ]
    ticks = 5
    for i in range(ticks + 1):
        accuracy = low + (high - low) * i / ticks
        lines.append(f'  <path class="grid" d="M{LEFT} {y(accuracy):.1f}H{RIGHT}"/>')
        lines.append(text(LEFT - 10, y(accuracy) + 4, f"{100 * accuracy:.1f} %", "end"))
    for count in devices:
        lines.append(text(x(count), BOTTOM + 22, f"{count} · {count * rows_each}"))
    lines.append(text((LEFT + RIGHT) / 2, BOTTOM + 46, "devices · rows of a step"))

    means = {rule: [(count, statistics.mean(values)) for count, values in points] for rule, points in found.items()}
    from_top = sorted(means, key=lambda rule: -means[rule][-1][1])
    for rule, height in zip(from_top, apart([y(means[rule][-1][1]) for rule in from_top])):
        path = " ".join(f"{x(count):.1f},{y(mean):.1f}" for count, mean in means[rule])
        spread = "".join(f'<path class="spread" d="M{x(count):.1f} {y(min(values)):.1f}V{y(max(values)):.1f}"/>'
                         for count, values in found[rule])
        dots = "".join(f'<circle class="dot" cx="{x(count):.1f}" cy="{y(mean):.1f}" r="3.5"/>' for count, mean in means[rule])
        lines.append(f'  <g class="{CLASSES[rule]}"><polyline class="line" points="{path}"/>{spread}{dots}')
        lines.append(f'    <text class="label" x="{RIGHT + 14}" y="{height + 5:.1f}" font-size="14">{rule}</text></g>')
    return "\n".join(lines + ["</svg>", ""])


def table(found):
    devices = [count for count, _ in next(iter(found.values()))]
    yield "| | " + " | ".join(f"{count} device{'s' if count > 1 else ''}" for count in devices) + " |"
    yield "|---" * (len(devices) + 1) + "|"
    for rule, points in found.items():
        cells = [f"{100 * statistics.mean(values):.1f} ({100 * min(values):.1f} – {100 * max(values):.1f})"
                 for _, values in points]
        yield f"| {rule} | " + " | ".join(cells) + " |"


def draw(source, target):
    if not source.exists():
        sys.exit(f"batch_size: there is no {source}; `batch_size.py measure` writes it")
    measured = json.loads(source.read_text(encoding="utf-8"))
    found = curves(measured["runs"])
    rows_each = int(COMMON[COMMON.index("--per-device-batch") + 1])
    target.write_text(picture(found, rows_each), encoding="utf-8")
    print(*table(found), sep="\n")


def main():
    job, arguments = (sys.argv[1] if len(sys.argv) > 1 else ""), sys.argv[2:]
    if job == "measure":
        measure(arguments[0] if arguments else ROOT / "build/release/bin/brigade")
    elif job == "draw":
        draw(Path(arguments[0]) if arguments else RESULTS, Path(arguments[1]) if len(arguments) > 1 else PICTURE)
    else:
        sys.exit(__doc__.strip())


if __name__ == "__main__":
    main()

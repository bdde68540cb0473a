#!/usr/bin/env python3
"""Draws docs/collectives.svg from what `./run bench collectives` has written, and prints the tables of docs/performance.md.

Usage: plot_collectives.py [JSON [SVG]], which are build/bench/collectives.json and docs/collectives.svg.
"""
import json
import math
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent

# Of the picture, in its own units.
WIDTH, HEIGHT = 880, 500
LEFT, RIGHT, TOP, BOTTOM = 86, 784, 84, 438
LABEL_DISTANCE = 20

SERIES = {"Brigade": "ours", "Open MPI": "mpi", "Gloo": "gloo"}  # and their classes in STYLE

STYLE = """
    .paper { fill: #fbfaf7 } .grid { stroke: #e4e1da } .text { fill: #5d6570 } .title { fill: #1a1d21 }
    .ours { color: #0b5cad } .mpi { color: #b4540a } .gloo { color: #6b5b95 }
    .line { stroke: currentColor; fill: none; stroke-width: 2; stroke-linejoin: round }
    .dot, .label { fill: currentColor }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #15181c } .grid { stroke: #2c3138 } .text { fill: #a3abb5 } .title { fill: #e8eaed }
      .ours { color: #6cb0f5 } .mpi { color: #f0a35e } .gloo { color: #b9a8e6 }
    }"""


def size_name(count):
    for unit, one in (("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= one:
            return f"{count // one} {unit}"
    return f"{count} B"


def time_name(microseconds):
    for unit, one in (("s", 1e6), ("ms", 1e3), ("µs", 1)):
        if microseconds >= one:
            return f"{microseconds / one:.0f} {unit}"
    return f"{microseconds * 1e3:.0f} ns"


def rows_of(rows, operation, participants):
    """{bytes: {peer: row}}, sizes in ascending order."""
    found = {}
    for row in rows:
        about = row["about"]
        if about.get("operation") == operation and about.get("participants") == participants and "peer" in about:
            found.setdefault(about["bytes"], {})[about["peer"]] = row
    return dict(sorted(found.items()))


def curves(sizes):
    """{series: [(bytes, microseconds)]} of those series that there are."""
    found = {name: [] for name in SERIES}
    for count, peers in sizes.items():
        found["Brigade"].append((count, next(iter(peers.values()))["ours"]))
        for name in found.keys() & peers.keys():
            found[name].append((count, peers[name]["peer"]))
    return {name: points for name, points in found.items() if points}


class Scale:
    """Where the values from `low` to `high` lie between `start` and `end`, logarithmically."""

    def __init__(self, low, high, start, end):
        self.low, self.start = math.log(low), start
        self.slope = (end - start) / (math.log(high) - self.low)

    def __call__(self, value):
        return self.start + (math.log(value) - self.low) * self.slope


def apart(heights):
    """The heights of labels, from the top, moved down where they would overlap."""
    moved = []
    for height in heights:
        moved.append(max([height] + [above + LABEL_DISTANCE for above in moved[-1:]]))
    return moved


def picture(machine, found):
    sizes = [count for count, _ in found["Brigade"]]
    times = [time for points in found.values() for _, time in points]
    decades = range(math.floor(math.log10(min(times))), math.ceil(math.log10(max(times))) + 1)
    x = Scale(sizes[0], sizes[-1], LEFT, RIGHT)
    y = Scale(10.0 ** decades[0], 10.0 ** decades[-1], BOTTOM, TOP)

    def text(x_at, y_at, words, anchor="middle"):
        return f'  <text class="text" x="{x_at:.1f}" y="{y_at:.1f}" font-size="13" text-anchor="{anchor}">{escape(words)}</text>'

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="Helvetica, Arial, sans-serif" role="img" aria-labelledby="t d">',
        '  <title id="t">Time of an all-reduce against its size</title>',
        f'  <desc id="d">Two logarithmic axes: size, and time of a call, of {", ".join(found)}.</desc>',
        f"  <style>{STYLE}\n  </style>",
        f'  <rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        f'  <text class="title" x="{LEFT}" y="34" font-size="18">All-reduce of float32, 2 participants: time a call</text>',
        text(LEFT, 58, machine, "start"),
    ]
    for decade in decades:
        time = 10.0**decade
        lines.append(f'  <path class="grid" d="M{LEFT} {y(time):.1f}H{RIGHT}"/>')
        lines.append(text(LEFT - 10, y(time) + 4, time_name(time), "end"))
    for count in sizes[::2]:
        lines.append(f'  <path class="grid" d="M{x(count):.1f} {TOP}V{BOTTOM}"/>')
        lines.append(text(x(count), BOTTOM + 22, size_name(count)))
    lines.append(text((LEFT + RIGHT) / 2, BOTTOM + 46, "size that each participant gives and gets"))

    from_top = sorted(found, key=lambda name: -found[name][-1][1])
    for name, height in zip(from_top, apart([y(found[name][-1][1]) for name in from_top])):
        points = [(x(count), y(time)) for count, time in found[name]]
        path = " ".join(f"{across:.1f},{down:.1f}" for across, down in points)
        dots = "".join(f'<circle class="dot" cx="{across:.1f}" cy="{down:.1f}" r="3"/>' for across, down in points)
        lines.append(f'  <g class="{SERIES[name]}"><polyline class="line" points="{path}"/>{dots}')
        lines.append(f'    <text class="label" x="{RIGHT + 10}" y="{height + 5:.1f}" font-size="14">{name}</text></g>')
    return "\n".join(lines + ["</svg>", ""])


def figure(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 2 else f"{value:.2f}"


def table(heads, lines):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, ["---"] * len(heads), *lines]) + "\n"


def against(row, *keys):
    """The row's figures as cells, empty ones where there is no such row or figure."""
    return [figure(row[key]) if row and row.get(key) is not None else "" for key in keys]


def tables(rows):
    yield "all_reduce, us a call"
    lines = []
    for count, peers in rows_of(rows, "all_reduce", 2).items():
        mpi, gloo = peers.get("Open MPI"), peers.get("Gloo")
        lines.append([size_name(count), *against(mpi or gloo, "ours")])
        lines[-1] += against(mpi, "peer", "ratio", "goal") + against(gloo, "peer", "ratio", "goal")
    yield table(["", "ours", "Open MPI", "ratio", "goal", "Gloo", "ratio", "goal"], lines)

    others = ["all_gather", "reduce_scatter", "all_to_all", "broadcast"]
    found = {name: rows_of(rows, name, 2) for name in others}
    yield "the others, us a call and ratio against Open MPI"
    lines = []
    for count in sorted(set().union(*found.values())):
        lines.append([size_name(count)])
        for name in others:
            lines[-1] += against(found[name].get(count, {}).get("Open MPI"), "ours", "ratio")
    yield table(["", *(head for name in others for head in (name, "ratio"))], lines)

    yield "everything else"
    rest = [row for row in rows if row["about"].get("participants") != 2 or row["about"].get("peer") not in SERIES]
    lines = [[row["name"], f"{figure(row['ours'])} {row['unit']}", *against(row, "peer", "ratio", "goal")] for row in rest]
    yield table(["", "ours", "peer", "ratio", "goal"], lines)


def main():
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/bench/collectives.json"
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "docs/collectives.svg"
    if not source.exists():
        sys.exit(f"plot_collectives: there is no {source}; `./run bench collectives` writes it")
    measured = json.loads(source.read_text(encoding="utf-8"))
    found = curves(rows_of(measured["rows"], "all_reduce", 2))
    if len(found.get("Brigade", [])) < 2:
        sys.exit(f"plot_collectives: {source} has no curve of all_reduce; the bench needs Open MPI or Gloo")
    target.write_text(picture(measured["machine"], found), encoding="utf-8")
    print(*tables(measured["rows"]), sep="\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""scripts/plot_collectives.py on small files. Usage: plot_collectives_test.py"""
import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent.parent / "scripts/plot_collectives.py"
SVG = "{http://www.w3.org/2000/svg}"


def row(size, peer, ours, theirs, operation="all_reduce", participants=2):
    return {"name": f"{operation} vs {peer}", "unit": "us", "judged": True, "ours": ours, "peer": theirs, "ratio": theirs / ours,
            "goal": 1.0, "about": {"operation": operation, "bytes": size, "participants": participants, "peer": peer}}


class PlotCollectives(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.json, self.svg = Path(folder.name) / "in.json", Path(folder.name) / "out.svg"

    def plot(self, rows):
        self.json.write_text(json.dumps({"machine": "A & B, 2 cores", "rows": rows}))
        return self.run_script()

    def run_script(self):
        return subprocess.run([sys.executable, SCRIPT, self.json, self.svg], capture_output=True, text=True, encoding="utf-8")

    def curves(self):
        """{label: [(x, y)]} of the picture."""
        found = {}
        for group in ElementTree.parse(self.svg).iter(f"{SVG}g"):
            points = group.find(f"{SVG}polyline").get("points").split()
            found[group.find(f"{SVG}text").text] = [tuple(map(float, point.split(","))) for point in points]
        return found

    def test_equal_ratios_are_equal_distances_on_both_axes(self):
        self.plot([row(size, "Open MPI", ours, 5 * ours) for size, ours in ((4, 1), (16, 10), (64, 100))])
        (x1, y1), (x2, y2), (x3, y3) = self.curves()["Brigade"]
        self.assertAlmostEqual(x2 - x1, x3 - x2, delta=0.2)
        self.assertAlmostEqual(y1 - y2, y2 - y3, delta=0.2)
        self.assertGreater(x2 - x1, 0)
        self.assertGreater(y1 - y2, 0)  # what takes longer is higher

    def test_has_one_curve_a_library_that_was_there(self):
        self.plot([row(size, peer, 1, 5) for size in (4, 16) for peer in ("Gloo", "traffic limit")])
        self.assertEqual(set(self.curves()), {"Brigade", "Gloo"})

    def test_draws_nothing_else_than_all_reduce_between_two(self):
        self.plot([row(4, "Gloo", 1, 5), row(16, "Gloo", 1, 5), row(64, "Gloo", 1, 5, participants=4),
                   row(64, "Open MPI", 1, 5, operation="broadcast")])
        self.assertEqual({name: len(points) for name, points in self.curves().items()}, {"Brigade": 2, "Gloo": 2})

    def test_names_the_machine(self):
        self.plot([row(4, "Gloo", 1, 5), row(16, "Gloo", 1, 5)])
        self.assertIn("A & B, 2 cores", [text.text for text in ElementTree.parse(self.svg).iter(f"{SVG}text")])

    def test_prints_every_row_in_a_table(self):
        rate = {"name": "32 participants", "unit": "calls/s", "judged": True, "ours": 6543.2, "about": {}}
        said = self.plot([row(4, "Open MPI", 0.25, 2), row(4, "Gloo", 0.25, 1500), row(16, "Gloo", 1, 5),
                          row(1024, "Open MPI", 3, 12, "broadcast"), row(1024, "Open MPI", 2, 9, participants=8), rate]).stdout.splitlines()
        self.assertIn("| 4 B | 0.25 | 2.0 | 8.0 | 1.00 | 1,500 | 6,000 | 1.00 |", said)
        self.assertIn("| 1 KB |  |  |  |  |  |  | 3.0 | 4.0 |", said)
        self.assertIn("| all_reduce vs Open MPI | 2.0 us | 9.0 | 4.5 | 1.00 |", said)
        self.assertIn("| 32 participants | 6,543 calls/s |  |  |  |", said)

    def test_without_a_file_says_what_writes_it(self):
        run = self.run_script()
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("./run bench collectives", run.stderr)

    def test_without_a_curve_says_what_is_missing(self):
        for rows in [], [row(4, "Gloo", 1, 5)]:
            run = self.plot(rows)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn("needs Open MPI or Gloo", run.stderr)


if __name__ == "__main__":
    unittest.main()

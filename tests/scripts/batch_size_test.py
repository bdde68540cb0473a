#!/usr/bin/env python3
"""scripts/batch_size.py on small files. Usage: batch_size_test.py"""
import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent.parent / "scripts/batch_size.py"
SVG = "{http://www.w3.org/2000/svg}"


def one(rule, devices, seed, accuracy):
    return {"rule": rule, "devices": devices, "seed": seed, "test_accuracy": accuracy}


class BatchSize(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.json, self.svg = Path(folder.name) / "in.json", Path(folder.name) / "out.svg"

    def draw(self, runs):
        self.json.write_text(json.dumps({"options": [], "runs": runs}))
        return subprocess.run([sys.executable, SCRIPT, "draw", self.json, self.svg], capture_output=True, text=True,
                              encoding="utf-8", check=True).stdout

    def curves(self):
        """{label: [(x, y)]} of the picture."""
        found = {}
        for group in ElementTree.parse(self.svg).iter(f"{SVG}g"):
            points = group.find(f"{SVG}polyline").get("points").split()
            found[group.find(f"{SVG}text").text] = [tuple(map(float, point.split(","))) for point in points]
        return found

    def test_draws_the_mean_of_the_seeds_higher_where_more_is_right(self):
        self.draw([one("fixed rate", devices, seed, accuracy + 0.01 * seed)
                   for devices, accuracy in ((1, 0.8), (2, 0.85), (4, 0.9)) for seed in (-1, 0, 1)])
        (x1, y1), (x2, y2), (x3, y3) = self.curves()["fixed rate"]
        self.assertAlmostEqual(x2 - x1, x3 - x2, delta=0.2)  # twice as many devices are one step
        self.assertAlmostEqual(y1 - y2, y2 - y3, delta=0.2)
        self.assertGreater(y1, y2)

    def test_has_a_curve_for_each_rule(self):
        self.draw([one(rule, devices, 0, 0.8) for rule in ("fixed rate", "linear") for devices in (1, 2)])
        self.assertEqual(set(self.curves()), {"fixed rate", "linear"})

    def test_prints_means_with_the_worst_and_the_best_seed(self):
        table = self.draw([one("linear", devices, seed, 0.80 + 0.02 * seed) for devices in (1, 2) for seed in (0, 1, 2)])
        self.assertIn("| linear | 82.0 (80.0 – 84.0) | 82.0 (80.0 – 84.0) |", table)

    def test_counts_a_run_that_failed_as_a_guess_among_ten(self):
        table = self.draw([one("linear", 1, 0, 0.8), one("linear", 2, 0, None)])
        self.assertIn("10.0 (10.0 – 10.0)", table)

    def test_says_what_writes_the_file_that_is_missing(self):
        ran = subprocess.run([sys.executable, SCRIPT, "draw", self.json], capture_output=True, text=True, check=False)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("measure", ran.stderr)


if __name__ == "__main__":
    unittest.main()

"""What the peers that train have in common: their arguments, what they start from, and how a round is timed."""
import argparse
import json
import statistics
import time

import numpy as np

STEPS_BEFORE_LOSS = 3
ROUND_SECONDS = 0.3
DTYPES = {"F32": np.float32, "I64": np.int64}


def arguments(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["mlp", "cnn", "transformer"], default="mlp")
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32, help="rows a device")
    parser.add_argument("--hidden", type=int, default=128, help="of the mlp")
    parser.add_argument("--start", required=True, help="safetensors: parameters by name, x and y of all devices")
    return parser.parse_args()


def read_start(path):
    """The tensors of a safetensors file by name; its float32 and int64 ones are all that there are."""
    data = np.fromfile(path, np.uint8)
    begin = 8 + int(data[:8].view(np.uint64)[0])
    header = json.loads(data[8:begin].tobytes())
    header.pop("__metadata__", None)
    tensors = {}
    for name, about in header.items():
        first, last = about["data_offsets"]
        tensors[name] = data[begin + first:begin + last].copy().view(DTYPES[about["dtype"]]).reshape(about["shape"])
    return tensors


def step_microseconds(step, count):
    """The median of up to 10 equal series of together about `count` steps, as in bench/support/rounds.h."""
    series = min(max(count // 3, 1), 10)
    length = count // series
    taken = []
    for _ in range(series):
        begin = time.perf_counter()
        for _ in range(length):
            step()
        taken.append((time.perf_counter() - begin) / length * 1e6)
    return statistics.median(taken)


def steps_of_a_round(microseconds):
    return max(3, int(ROUND_SECONDS * 1e6 / microseconds))

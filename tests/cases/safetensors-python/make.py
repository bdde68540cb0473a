#!/usr/bin/env python3
"""Writes the files of this folder with the reference implementation: pip install safetensors numpy ml_dtypes.

Made with safetensors 0.8.0, numpy 2.4.6 and ml_dtypes 0.6.0. Tests read the files; nothing but this needs Python.
"""
import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

# One tensor of every dtype, in an order that is not the file's: values 0, 1, 2, ... in the shape [2, 3].
DTYPES = {
    "i64": np.int64,
    "bool": np.bool_,
    "f16": np.float16,
    "u8": np.uint8,
    "f64": np.float64,
    "i8": np.int8,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "i16": np.int16,
    "f32": np.float32,
}
every = {}
for name, dtype in DTYPES.items():
    values = np.arange(6).reshape(2, 3)
    every[name] = (values % 2 == 1) if dtype == np.bool_ else values.astype(dtype)
save_file(every, "every_dtype.safetensors", metadata={"format": "np"})

# Shapes and names at the edges: a scalar, tensors of no element, names that JSON has to escape.
save_file(
    {
        "scalar": np.array(2.5, np.float32),
        "empty": np.zeros((0, 3), np.float32),
        "one byte": np.array([200], np.uint8),
        "Gewicht \u00fc \u91cd\u307f \U0001f373": np.array([1.5, -0.0, np.inf], np.float64),
        'quote " and \\ back': np.array([[-1], [-2]], np.int16),
    },
    "edges.safetensors",
    metadata={'say "\u00fc"': "two\nlines\tand \\ more"},
)

save_file({"counts": np.array([1, 2], np.uint16)}, "unsigned.safetensors")  # torch has no such dtype

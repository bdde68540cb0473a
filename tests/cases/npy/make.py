#!/usr/bin/env python3
"""Writes the files of this folder with numpy (made with 2.4.6). Tests read them; nothing but this needs Python."""
import numpy as np
from numpy.lib import format as npy


def write(name, array, version=(1, 0)):
    with open(name + ".npy", "wb") as file:
        npy.write_array(file, array, version=version)


# Values 0 to 5 in the shape [2, 3]; bools say which are odd.
for code in ["|u1", "|i1", "<i2", "<i4", "<i8", "<f2", "<f4", "<f8", ">i2", ">i4", ">i8", ">f2", ">f4", ">f8"]:
    order = "big_" if code[0] == ">" else ""
    write(order + {"u": "uint", "i": "int", "f": "float"}[code[1]] + str(8 * int(code[2])), np.arange(6).reshape(2, 3).astype(code))
write("bool", np.arange(6).reshape(2, 3) % 2 == 1)

write("version_2", np.arange(6, dtype="<i4").reshape(2, 3), (2, 0))
write("version_3", np.arange(6, dtype="<i4").reshape(2, 3), (3, 0))
write("fortran", np.asfortranarray(np.arange(24, dtype="<i4").reshape(2, 3, 4)))
write("big_fortran", np.asfortranarray(np.arange(24, dtype=">f8").reshape(2, 3, 4)))
write("scalar", np.array(2.5, "<f4"))
write("empty", np.zeros((0, 3), "<f4"))

# What torch has no dtype for.
write("refused_uint16", np.arange(2, dtype="<u2"))
write("refused_complex64", np.zeros(2, "<c8"))
write("refused_text", np.array(["ab", "c"]))
write("refused_dates", np.zeros(2, "<M8[s]"))
write("refused_records", np.zeros(2, [("a", "<i4"), ("b", "<f4")]))
write("refused_objects", np.array([{}, None], dtype=object))

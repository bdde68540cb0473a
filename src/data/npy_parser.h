// The NPY format of numpy.save, without torch.
//
// "\x93NUMPY", a version of two bytes, the size of the header (16 bits in version 1, 32 in 2 and 3, little-endian), the
// header, a Python dictionary such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } with spaces and a
// newline behind it, then the elements. Version 3 differs from 2 in names of fields only, which are not read.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "brigade/comm/dtype.h"
#include "data/byte_source.h"

namespace brigade::data {

enum class AxisOrder { kLastFastest, kFirstFastest };  // C's and Fortran's
enum class ByteOrder { kLittle, kBig };

struct NpyHeader {
  comm::DType dtype = comm::DType::kUint8;
  ByteOrder byte_order = ByteOrder::kLittle;
  AxisOrder axis_order = AxisOrder::kLastFastest;
  std::vector<std::int64_t> sizes = {};
  std::uint64_t bytes = 0;  // of all elements
};

// Reads everything before the elements, and checks that exactly these follow; `source` must know how many bytes are
// still to come. Throws DataError, also for dtypes that torch does not have, for Python objects, which are never
// unpickled, and for more than `max_bytes`.
NpyHeader read_npy_header(ByteSource& source, std::uint64_t max_bytes);

// Reads the elements into `out`, which takes header.bytes, in the order of the file and the byte order of the machine.
// Throws DataError when the source ends early or goes on, or a bool is neither 0 nor 1.
void read_npy_data(ByteSource& source, const NpyHeader& header, std::span<std::byte> out);

}  // namespace brigade::data

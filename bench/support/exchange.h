// How well the host has placed our two cores at the moment.
//
// A virtual machine's cores are moved: two that share a cache now may lie on two sockets a second later, and everything
// that passes data between threads then takes several times as long. So benches measure this with every round and judge
// goals by rounds in which the cores lay close, and by no others.
#pragma once

namespace brigade::bench {

inline constexpr double kCloseCoresNanoseconds = 120;

// Nanoseconds in which a 4-byte value gets from one thread to another: half of there and back, the median of short
// series.
double exchange_nanoseconds();

}  // namespace brigade::bench

// How well the host has placed our two cores at the moment.
//
// A virtual machine's cores are moved: two that share a cache now may lie on two sockets a second later, and everything
// that passes data between threads then takes several times as long. So benches measure this with every round and judge
// goals by rounds in which the cores lay close, and by no others. What close is depends on the processor, so it is told from
// the quicker exchanges that the run has seen.
#pragma once

namespace brigade::bench {

// Nanoseconds in which a 4-byte value gets from one thread to another: half of there and back, the median of short
// series.
double exchange_nanoseconds();

// The most that an exchange takes between cores that lie close: half as much again as the quickest quarter so far, and
// where that is less, 120 ns, which cores that share a cache stay below.
double close_cores_nanoseconds();

}  // namespace brigade::bench

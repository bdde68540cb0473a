// What the machine's memory allows, whoever moves the bytes.
#pragma once

#include <cstddef>

#include "support/team.h"

namespace brigade::bench {

// Nanoseconds in which the threads of `team` read and write `bytes` together by c = a + b, the better of two loops: with
// ordinary stores and with stores that pass by the caches. Every thread has three buffers of its own, and all of them hold
// `bytes` together; counted is what must be read and written, not the reads of lines that ordinary stores cause.
double traffic_nanoseconds(Team& team, std::size_t bytes, int calls);

}  // namespace brigade::bench

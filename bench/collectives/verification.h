// What it costs to compare calls before a byte moves.
#pragma once

namespace brigade::bench {

// Nanoseconds in which one of two participants describes an all-reduce of one tensor, digests the description and compares
// the digest with the other's. The line that holds the other's is read in any case, to see that it has come.
double verification_nanoseconds(int calls);

}  // namespace brigade::bench

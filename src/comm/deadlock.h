// Participants of groups that overlap can wait for one another: each in a group of its own, for one that waits in another.
#pragma once

#include "comm/roster.h"

namespace brigade::comm {

// Fails the group, with a mismatch that says who waits for whom, when `rank`, which waits, waits in a circle. Of those in
// one, the last to begin to wait sees it.
void break_deadlock(Roster& roster, int rank) noexcept;

}  // namespace brigade::comm

// The all-gather after an update by shares.
#pragma once

#include <source_location>
#include <vector>

#include "brigade/comm/group.h"
#include "layout.h"

namespace brigade::training {

// On every device at once: what each device has written, `written[device]`, in its own copy of the buffer goes to the copies of
// all others; `own` is that of the calling one.
void gather_parameters(const Layout& layout, const Flat& own, const std::vector<BlockRange>& written,
                       comm::Group& group, std::source_location site);

}  // namespace brigade::training

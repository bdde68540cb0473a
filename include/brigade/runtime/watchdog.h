// What happens when a device does not come back.
//
// A device that waits for another gives up after BRIGADE_DEADLINE seconds without progress and throws DeadlineExceeded. The one
// that it waited for may be in an operator, or a loop of the program's, that never ends: no thread can be stopped from outside,
// so whoever called the pmap waits on. When as much time again has passed, a table of what each device is doing goes to the
// hang action, and again after each further deadline.
#pragma once

#include <functional>
#include <string>

namespace brigade {

using HangAction = std::function<void(const std::string& table)>;

// Called on a thread of its own. The default logs the table as an error and leaves the decision to the program; one that is
// watched by a scheduler ends the process, as `brigade` does. An empty function brings the default back.
void set_hang_action(HangAction action);

}  // namespace brigade

// Gives the test program nine CPU devices, whatever the machine has.
#pragma once

#include "brigade/runtime/device.h"

namespace brigade {

inline const bool kNineDevices = (set_cpu_devices(9), true);

}  // namespace brigade

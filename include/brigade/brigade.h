// What a program that trains with Brigade needs.
#pragma once

#include <torch/types.h>

#include "brigade/base/error.h"
#include "brigade/lax/collectives.h"
#include "brigade/runtime/device.h"
#include "brigade/transform/grad.h"
#include "brigade/transform/pmap.h"
#include "brigade/tree/tree.h"

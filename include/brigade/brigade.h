// What a program that trains with Brigade needs.
#pragma once

#include <torch/types.h>

#include "brigade/base/error.h"
#include "brigade/data/fashion_mnist.h"
#include "brigade/data/loader.h"
#include "brigade/data/normalize.h"
#include "brigade/lax/collectives.h"
#include "brigade/optim/adam.h"
#include "brigade/optim/schedule.h"
#include "brigade/optim/sgd.h"
#include "brigade/random/distributions.h"
#include "brigade/random/dropout.h"
#include "brigade/random/initializers.h"
#include "brigade/random/key.h"
#include "brigade/random/permutation.h"
#include "brigade/runtime/device.h"
#include "brigade/transform/grad.h"
#include "brigade/transform/pad.h"
#include "brigade/transform/pmap.h"
#include "brigade/transform/reduced_grad.h"
#include "brigade/tree/tree.h"

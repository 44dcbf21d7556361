// Time since some origin that never goes back, for timeouts of what is not on a worker.
#pragma once

#include "dataplane/base/units.h"

namespace paceline {

Nanos steady_time();

}  // namespace paceline

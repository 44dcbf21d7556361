// Time since some origin that never goes back, for timeouts outside of workers.
#pragma once

#include "dataplane/base/units.h"

namespace paceline {

Nanos steady_time();

}  // namespace paceline

// JSON as it is accepted from outside (RFC 8259): one value, UTF-8, members named once, nested no
// deeper than kMostDepth, numbers that a double holds.
#pragma once

#include <string>
#include <string_view>

#include "control/daemon/api/endpoint.h"

namespace paceline::daemon {

inline constexpr unsigned kMostJsonDepth = 16;

// Not empty: what is wrong and at which byte; `out` is then null.
std::string read_json(std::string_view text, Json& out);

}  // namespace paceline::daemon

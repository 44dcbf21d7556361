// `paceline cc list` and `paceline cc show NAME`: what algorithms there are and what their
// parameters mean, printed from the same tables that check a scenario.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>

#include "dataplane/base/units.h"

namespace paceline::tools {

// Lines of text are no longer, unless the terminal is.
inline constexpr std::size_t kTextColumns = 100;

enum class CcFormat : std::uint8_t { text, json };

struct CcShowOptions {
  std::string name;                      // algorithm
  std::string profile;                   // "" = default
  Rate link_rate = rate_from_gbps(100);  // what scaled profile values are shown for
  CcFormat format = CcFormat::text;
  std::size_t width = kTextColumns;
};

// Both return the exit code: 0, or 2 for a name that does not exist (explained on `err`).
int run_cc_list(std::ostream& out, CcFormat format, std::size_t width = kTextColumns);
int run_cc_show(std::ostream& out, std::ostream& err, const CcShowOptions& options);

}  // namespace paceline::tools

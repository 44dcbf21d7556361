// Bounds around the ranked measures of every cell; continuous integration checks a league against
// them. A change that is meant to move results rewrites them (`paceline league --write-bounds`),
// and the difference is part of the change.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/league/results.h"

namespace paceline::league {

inline constexpr std::string_view kBoundsKind = "paceline league bounds";

struct Bound {
  std::string scenario;
  std::string entry;
  Measure measure = Measure::efficiency;
  double low = 0;
  double high = 0;
};

struct Bounds {
  Size size = Size::quick;
  std::uint32_t repetitions = 0;
  std::uint64_t seed = 0;
  std::vector<Bound> bounds;
};

// The relative change of a mean that is still within bounds: more than a harmless change of the
// emulator's timing causes (a packet more or less at a port), less than a broken algorithm causes.
double tolerance_of(Measure measure);

// JSON, one bound a line.
std::string bounds_text(const Results& results);

// Errors name file, place and what is allowed; bounds of another size, seed or number of
// repetitions than the plan's are an error.
config::Read<Bounds> read_bounds_file(const std::string& path, const Plan& plan);

struct BoundsCheck {
  std::size_t checked = 0;             // figures
  std::vector<std::string> left;       // which figure is outside, and by how much
  std::vector<std::string> unbounded;  // cells without bounds: "scenario under entry"
};
// Bounds of scenarios and entries that the results do not have are left alone.
BoundsCheck check_bounds(const Bounds& bounds, const Results& results);

}  // namespace paceline::league

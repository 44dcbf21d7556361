// Resolves one parameter set of one algorithm from its ParamSpec table, a profile and the user's
// overrides. The TOML reader, `paceline cc show`, the API and the tuner all use it, so that they
// accept and refuse exactly the same values.
//
// Errors are values, and all of them are reported: callers add file, line and column.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cc/interface/algorithm.h"

namespace paceline::cc {

// The profile every algorithm has: the defaults of its ParamSpec table.
inline constexpr std::string_view kDefaultProfile = "default";

// The user's value of one parameter. If a name is given twice, the later value holds.
struct ParamOverride {
  std::string_view name;
  double value = 0;
};

struct ParamError {
  enum class Kind : std::uint8_t {
    unknown_profile,
    unknown_parameter,
    not_finite,
    out_of_range,
    not_whole,        // flags, counts and bytes are whole numbers
    above_link_rate,  // a rate in Mb/s beyond what the port can carry
  };
  Kind kind{};
  std::string name;     // parameter or profile
  double value = 0;     // the offending value; 0 for unknown names
  std::string nearest;  // unknown names: the valid name nearest to it
  std::string message;  // one sentence: the value, and what is allowed
};

// Values in the order of AlgorithmInfo::params, or every error found.
using ResolvedParams = std::variant<std::vector<double>, std::vector<ParamError>>;

// An empty profile name means "default". facts.link_rate scales per_bps values and bounds rates; a
// link rate of 0 means "unknown": per_bps values then stand at their reference rate, unbounded.
ResolvedParams resolve_params(const AlgorithmInfo& algorithm, std::string_view profile,
                              std::span<const ParamOverride> overrides, const PortFacts& facts);

// The profile of that name, or nullptr. "default" is not in the table: nullptr, too.
const Profile* find_profile(const AlgorithmInfo& algorithm, std::string_view name);

// A profile's value on a link of this rate.
double value_at(const ProfileValue& value, Rate link_rate);

// Flags, counts and bytes take whole numbers only.
bool is_whole_unit(std::string_view unit);

// Shortest decimal text that reads back as the same double.
std::string number_text(double value);

}  // namespace paceline::cc

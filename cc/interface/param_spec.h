// Parameter tables: declared once beside the algorithm, they drive the TOML check, `paceline cc
// show`, the API, the tuner's bounds and the reference page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace paceline::cc {

struct ParamSpec {
  std::string_view name;
  std::string_view unit;  // "us", "Mb/s", "bytes", "1" ...
  double default_value = 0;
  double min = 0;
  double max = 0;
  bool live = true;  // may change while connections run
  std::string_view meaning;
  std::string_view source;  // paper and section, or the program whose default it is
};

// One value of a profile. per_bps != 0: the value holds at that link rate and scales linearly with
// the actual one (rates such as R_AI, thresholds such as Kmin).
struct ProfileValue {
  std::string_view name;
  double value = 0;
  double per_bps = 0;
};

struct Profile {
  std::string_view name;
  std::string_view source;
  std::span<const ProfileValue> values;
};

// Index of a parameter by name, or -1.
constexpr int find_param(std::span<const ParamSpec> specs, std::string_view name) {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace paceline::cc

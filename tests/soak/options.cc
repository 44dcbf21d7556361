#include "tests/soak/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace paceline::soak {

namespace {

constexpr std::array kModes = {
    Mode{"gobackn", [](transport::EngineConfig&) {}},  // what an engine does unless told otherwise
    Mode{"selective",
         [](transport::EngineConfig& config) {
           config.reliability = transport::Reliability::selective;
         }},
    Mode{"multipath",
         [](transport::EngineConfig& config) {
           config.reliability = transport::Reliability::selective;
           config.multipath = transport::Multipath::packet;
         }},
};

}  // namespace

const Mode* find_mode(std::string_view name) {
  const auto* const mode =
      std::find_if(kModes.begin(), kModes.end(), [&](const Mode& m) { return m.name == name; });
  return mode == kModes.end() ? nullptr : mode;
}

std::vector<std::string> mode_names() {
  std::vector<std::string> names;
  for (const Mode& mode : kModes) names.emplace_back(mode.name);
  return names;
}

std::string reproduction(const Options& options, std::uint64_t seed) {
  return fmt::format(
      "soak --seed {} --packets {} --loss {} --reorder {} --duplicate {} --corrupt {} --mode {}",
      seed, options.packets, options.loss, options.reorder, options.duplicate, options.corrupt,
      options.mode);
}

}  // namespace paceline::soak

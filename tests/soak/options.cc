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
    // As a service in real time is told.
    Mode{"bursts",
         [](transport::EngineConfig& config) {
           config.coalesce_acks = true;
           config.answers_last = true;
           config.receive_bursts = 1;
           config.pacing_catch_up = picos_from_micros(5);
         },
         false, picos_from_micros(20)},
    Mode{"bursts_selective",
         [](transport::EngineConfig& config) {
           config.reliability = transport::Reliability::selective;
           config.coalesce_acks = true;
           config.answers_last = true;
           config.receive_bursts = 2;
         },
         false, picos_from_micros(20)},
    Mode{"ordered",
         [](transport::EngineConfig& config) {
           config.reliability = transport::Reliability::selective;
           config.multipath = transport::Multipath::chunk;
           config.paths = 4;
           config.path_run = 4;
           config.place_in_order = true;
           config.window_packets = 64;
           config.reorder_packets = 8;
         }},
    Mode{"foreign",
         [](transport::EngineConfig& config) {
           config.reliability = transport::Reliability::selective;
           config.peers = transport::PeerPolicy::roce;
         }},
    Mode{"discovered",
         [](transport::EngineConfig& config) { config.peers = transport::PeerPolicy::discover; }},
    Mode{"discovered_selective",
         [](transport::EngineConfig& config) {
           config.reliability = transport::Reliability::selective;
           config.peers = transport::PeerPolicy::discover;
         }},
    Mode{"changing", [](transport::EngineConfig&) {}, true},
    Mode{"changing_selective",
         [](transport::EngineConfig& config) {
           config.reliability = transport::Reliability::selective;
         },
         true},
    Mode{"trouble",
         [](transport::EngineConfig& config) {
           config.coalesce_acks = true;
           config.cnp_in_ack = true;
         },
         false, Picos{1}, true},
    Mode{"trouble_selective",
         [](transport::EngineConfig& config) {
           config.reliability = transport::Reliability::selective;
           config.peers = transport::PeerPolicy::discover;
         },
         false, Picos{1}, true},
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

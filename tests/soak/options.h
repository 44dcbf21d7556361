// What a soak is asked for, and the command that asks for it again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/transport/core/engine_config.h"

namespace paceline::soak {

// How the engines recover from loss, and what else they are told. A new way is one more row of
// kModes in options.cc.
struct Mode {
  std::string_view name;
  void (*configure)(transport::EngineConfig& engine);
  bool changes = false;  // congestion control and limits of rates change during the run
  Picos poll_every{1};   // hosts find what has come at multiples of this only
  bool trouble = false;  // beside all that works, connections that do not

  Picos poll_time(Picos due) const {
    if (due == kNever) return kNever;
    return Picos{(due.count + poll_every.count - 1) / poll_every.count * poll_every.count};
  }
};
const Mode* find_mode(std::string_view name);
std::vector<std::string> mode_names();

struct Options {
  std::uint64_t seed = 1;
  std::uint64_t seeds = 1;            // runs, with consecutive seeds
  std::uint64_t packets = 1'000'000;  // of each run, both directions, as sent on the cable
  double loss = 0.01;
  double reorder = 0.01;
  double duplicate = 0.01;
  double corrupt = 0.01;
  std::string mode = "gobackn";
  bool progress = true;
  bool hash = false;         // print hashes of all frames and completions, not what was done
  bool frames = false;       // print all frames
  std::string compare;       // file of pinned hashes that the runs named there must have
  std::string write_hashes;  // file of pinned hashes to rewrite
};

// The command line that repeats the run of `seed`.
std::string reproduction(const Options& options, std::uint64_t seed);

}  // namespace paceline::soak

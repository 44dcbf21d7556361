// Parameter sets that a search in the emulator found. Each names the workload of the search and the
// gain there. There is a file per algorithm, configs/presets/ALGORITHM.toml:
//
//   schema = 1
//   algorithm = "dcqcn"
//   emulator = "0.1.0"      # version of the program that found them
//
//   [[preset]]
//   name = "incast-waves"
//   command = "paceline tuner search ..."   # repeats the search
//   gain = 0.41             # mean rise of the objective over the search's first profile, new seeds
//   gain_sd = 0.05          # standard deviation of the gain between seeds
//   # link_gbps: the NICs' rate in the search; without it, or 0, the preset applies to any rate
//   signature = { load = 6, degree = 5, bytes = [0, 0.2, 0.8], core_marks = false, link_gbps = 25 }
//   params = { increase_timer_us = 20 }     # replace the champion's; names and ranges as in [cc]
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cc/interface/algorithm.h"
#include "control/tuner/online/observation/signature.h"
#include "dataplane/config/scenario.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::tuner::online {

struct Preset {
  std::string name;
  std::string command;
  double gain = 0;
  double gain_sd = 0.1;
  Signature signature;
  std::vector<config::ParamValue> params;  // checked against the algorithm's table
};

struct PresetLibrary {
  std::uint32_t schema = 1;
  std::string algorithm;
  std::string emulator;
  std::vector<Preset> presets;
};

// All errors, each with file, line and column; `algorithms` as in cc::algorithms().
config::Read<PresetLibrary> read_presets_text(std::string_view text, const std::string& source,
                                              std::span<const cc::AlgorithmInfo> algorithms);
config::Read<PresetLibrary> read_presets_file(const std::string& path,
                                              std::span<const cc::AlgorithmInfo> algorithms);

// Text of a file that read_presets_text reads.
std::string presets_text(const PresetLibrary& library);

// The values of a preset on top of `champion` (ParamSpec order).
std::vector<double> values_of(const Preset& preset, const cc::AlgorithmInfo& algorithm,
                              std::span<const double> champion);

// The expected gain of a preset under a signature. The farther that is from the signature of the
// preset's search, the smaller is `mean` and the larger is `sd`.
struct Promise {
  std::size_t preset = 0;
  double mean = 0;
  double sd = 0;
};

// The `most` presets nearest to the signature, nearest first.
std::vector<Promise> promises(const PresetLibrary& library, const Signature& signature,
                              std::size_t most);

}  // namespace paceline::tuner::online

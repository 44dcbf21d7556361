// Everything that a tuner remembers, as plain data: saved, and read back when the daemon restarts.
// For tuner*.cc only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/tuner/online/tuner.h"

namespace paceline::tuner::online {

// Knowledge about one signature.
struct Context {
  Signature signature;
  std::vector<double> incumbent;
  std::string incumbent_name;
  Bandit bandit;
  ClimbState climb;
  std::optional<ClimbMove> move;  // a climb's candidate on trial
  PairedTest test;                // of it
  std::uint64_t last_used = 0;    // block
  bool complained = false;        // of the champion, once
};

// The candidate of the current pair.
struct Trial {
  bool preset = false;
  std::size_t arm = 0;  // of the bandit, for a preset
  std::string name;
  std::vector<double> values;
};

struct TunerState {
  Mode mode = Mode::advise;
  Random::State random{};
  std::vector<double> champion;

  std::uint64_t order = 0;  // the last one's number
  Role role = Role::champion;
  std::vector<double> in_force;  // of the last order
  std::uint32_t waiting = 0;     // windows that did not have it yet
  std::uint32_t refusals = 0;    // in a row, of orders that were no candidate's
  std::uint32_t washed = 0;      // windows since it came into force, up to wash_windows

  Freeze freeze = Freeze::none;
  std::uint32_t fresh = 0;  // windows in a row, while frozen for telemetry

  bool learning = true;          // the signature is not known
  bool learning_context = true;  // then choose the context; otherwise it stays
  SignatureBuilder builder;
  ChangeDetector::State detector;
  std::vector<Window> watched;  // of the constraints

  Window block;  // the sum of its windows
  std::uint32_t block_windows = 0;
  bool block_breached = false;  // by the incumbent
  std::uint32_t cool = 0;       // blocks to let pass
  bool resting = false;         // idle because nothing was left to try

  std::optional<Trial> trial;
  bool candidate_first = false;
  bool second_half = false;
  Window first_half;
  bool incumbent_breached = false;  // in the current pair
  std::uint32_t empty_pairs = 0;    // in a row: nothing to compare

  std::uint64_t blocks = 0;
  std::uint64_t pairs = 0;
  std::uint64_t accepted = 0;
  double credit = 0;  // blocks of exploration

  std::string context;  // key; empty: none
  std::map<std::string, Context> contexts;
};

// JSON and back; the texts of errors, and `state` as it was, where it cannot be read.
std::string to_json(const TunerState& state, const cc::AlgorithmInfo& info);
std::vector<std::string> from_json(const std::string& text, const cc::AlgorithmInfo& info,
                                   const BanditOptions& bandit, TunerState& state);

}  // namespace paceline::tuner::online

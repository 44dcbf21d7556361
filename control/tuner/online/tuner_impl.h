// The tuner's internals: takes windows in, judges pairs of blocks, and says what it does. For
// tuner.cc only.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/tuner/online/tuner_state.h"

namespace paceline::tuner::online {

using MaybeOrder = std::optional<Order>;

class Tuner::Impl {
 public:
  Impl(const cc::AlgorithmInfo& info, const PresetLibrary& presets, std::vector<double> champion,
       TunerOptions options, Journal journal);

  MaybeOrder step(const Window& window, const Surroundings& surroundings);
  MaybeOrder refused(std::uint64_t number, const std::string& why);
  void replace_champion(std::vector<double> values, const std::string& why);
  MaybeOrder set_mode(Mode mode);
  TunerStatus status() const;
  std::string state_text() const;
  std::vector<std::string> restore(const std::string& text);

 private:
  // Windows, guard, freezing.
  void forget_everything();
  std::pair<Freeze, std::string> wanted_freeze(const Window& window, const Surroundings& around);
  MaybeOrder freeze(Freeze why, const std::string& words);
  MaybeOrder on_breach(const Breach& breach);
  void learn(const Window& window);
  MaybeOrder learned();
  MaybeOrder changed_workload(const std::string& words);
  void start_block();
  MaybeOrder give(Role role, const std::vector<double>& values, const std::string& name,
                  const std::string& reason);
  MaybeOrder give_incumbent(const std::string& reason);

  // Pairs of blocks, and what follows from them.
  MaybeOrder block_done();
  MaybeOrder begin_pair();
  bool choose_candidate();
  MaybeOrder use(bool candidate);
  MaybeOrder finish_pair(const Window& incumbent, const Window& candidate);
  MaybeOrder accept();
  void drop();
  void reject(const std::string& why);
  void abandon_pair();
  PairedTest& test_on_trial();
  Context& context();
  bool is_champion(const std::vector<double>& values) const { return values == state_.champion; }

  // Status and reports.
  void write(Event event, std::string name, std::vector<Change> changes, std::string reason,
             Evidence evidence = {});
  Evidence evidence_of(const PairedTest& test) const;
  std::string candidate_words(const Trial& trial);
  void advise();

  const cc::AlgorithmInfo& info_;
  const PresetLibrary& presets_;
  TunerOptions options_;
  Journal journal_;
  Climb climb_;
  Random random_;
  ConstraintWatch watch_;
  ChangeDetector detector_;
  TunerState state_;  // the three members above are copied in and out of it
  Surroundings around_;
  std::int64_t now_ns_ = 0;
};

}  // namespace paceline::tuner::online

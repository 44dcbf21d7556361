// The online tuner: sees one window after the other and answers with parameter sets to put in
// force. Tries presets chosen by a bandit and single notches around the best so far, always as
// blocks of time in pairs against the incumbent (AB, BA, AB, ...), under constraints that end a
// candidate at once.
//
// Pure: no clock, no thread, no engine. The daemon drives it with a live service, tools and tests
// with a world in virtual time. It knows only what it is told: an order counts as in force when a
// window says so.
//
// Words: the champion is the parameter set that was in force before the tuner, and to which
// everything falls back. The incumbent is the best set that was accepted for the current workload;
// a candidate is on trial.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cc/interface/algorithm.h"
#include "control/tuner/online/candidates/bandit.h"
#include "control/tuner/online/candidates/climb.h"
#include "control/tuner/online/candidates/paired_test.h"
#include "control/tuner/online/candidates/presets.h"
#include "control/tuner/online/journal.h"
#include "control/tuner/online/observation/change_point.h"
#include "control/tuner/online/observation/constraints.h"
#include "control/tuner/online/observation/objective.h"
#include "control/tuner/online/observation/signature.h"
#include "control/tuner/online/observation/window.h"
#include "dataplane/base/numbers/random.h"

namespace paceline::tuner::online {

enum class Mode : std::uint8_t {
  off,     // looks at nothing
  advise,  // says what it would do and why; gives no orders
  automatic,
};
const char* to_string(Mode mode);  // "off", "advise", "auto"
std::optional<Mode> mode_of(std::string_view text);

struct TunerOptions {
  Mode mode = Mode::advise;
  std::uint64_t seed = 1;
  std::uint32_t block_windows = 50;     // 500 ms of 10 ms windows
  std::uint32_t wash_windows = 10;      // after a change of parameters: not counted
  std::uint32_t learn_windows = 100;    // of the incumbent, to a signature
  std::uint32_t cool_blocks = 10;       // after an acceptance or a change of the workload
  std::uint32_t rest_blocks = 600;      // when there is nothing left to try
  std::uint32_t apply_windows = 50;     // in which an order must have come into force
  std::uint32_t resume_windows = 3;     // fresh ones, after telemetry was lost
  std::int64_t guard_ns = 100'000'000;  // the time over which constraints are judged
  double explore_share = 0.05;  // of all blocks: those with presets other than the incumbent
  double explore_credit = 40;   // blocks of them that may be spent ahead
  Constraints constraints;
  ChangeOptions change;
  TestOptions test;
  BanditOptions bandit;
  ClimbOptions climb;
};

// The longest time from when a candidate's first breach could be seen until it is out of force.
inline constexpr std::int64_t kMostBreach_ns = 300'000'000;

// Returns an error in the options for windows of this length, or an empty text.
std::vector<std::string> problems_of(const TunerOptions& options, std::int64_t window_ns);

// Facts about the surroundings that the tuner does not find out itself. Given with each window.
struct Surroundings {
  bool kill_switch = false;       // back to the champion; what was tuned is forgotten
  bool other_experiment = false;  // one at a time: stand by
  std::string trouble;            // a failure or a diagnosis, in words; empty: none
  bool may_explore = true;        // policy: presets other than the incumbent may be tried
};

enum class Role : std::uint8_t { champion, incumbent, candidate };

// Put these parameters in force, all at once.
struct Order {
  std::uint64_t number = 0;  // for Window::order
  Role role{};
  std::vector<double> values;  // ParamSpec order
  std::string name;
  std::string reason;
};

enum class Freeze : std::uint8_t { none, telemetry, trouble, other_experiment, killed };
const char* to_string(Freeze freeze);

// The rest of the tuner's state is in tuner_state.h; this is what it shows.
struct TunerStatus {
  Mode mode{};
  Freeze freeze{};
  std::string doing;      // a sentence
  std::string signature;  // key
  std::string incumbent_name;
  std::vector<double> incumbent;
  std::uint64_t pairs = 0;  // finished, in all
  std::uint64_t accepted = 0;
  Evidence evidence;  // of the candidate on trial
};

class Tuner {
 public:
  using Journal = std::function<void(const JournalEntry&)>;

  // `info` and `presets` must outlive it; `presets` are of the same algorithm. champion: in
  // ParamSpec order. Throws std::invalid_argument when champion's size is wrong.
  Tuner(const cc::AlgorithmInfo& info, const PresetLibrary& presets, std::vector<double> champion,
        TunerOptions options, Journal journal);
  ~Tuner();
  Tuner(Tuner&&) noexcept;
  Tuner& operator=(Tuner&&) = delete;

  // The next window, and perhaps an order, which takes the place of any earlier one.
  std::optional<Order> step(const Window& window, const Surroundings& surroundings);
  // The order with this number cannot be put in force. The previous parameters stay in force.
  std::optional<Order> refused(std::uint64_t number, const std::string& why);
  // Another client changed the parameters: they are the champion now, and everything is forgotten.
  void replace_champion(std::vector<double> values, const std::string& why);
  // Leaving `automatic` gives the order to go back to the champion.
  std::optional<Order> set_mode(Mode mode);

  TunerStatus status() const;
  // All of it as JSON, and back: a tuner restored with the same options and presets decides as
  // this one would. Errors (of another algorithm, damaged) leave the tuner as it was.
  std::string state_text() const;
  std::vector<std::string> restore(const std::string& text);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline::tuner::online

// Metrics of a league's run, and their computation from its messages. The list differs from that of
// experiments: it has tails (p99.9), queues of the whole fabric and an efficiency for every kind of
// workload. Names are part of the league's file, schema 1, and never change meaning.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "control/experiment/metrics.h"
#include "dataplane/base/units.h"

namespace paceline::league {

enum class Measure : std::uint8_t {
  efficiency,
  goodput_gbps,
  slowdown_p50,
  slowdown_p99,
  slowdown_p999,
  slowdown_small_p50,
  slowdown_small_p99,
  slowdown_small_p999,
  slowdown_medium_p50,
  slowdown_medium_p99,
  slowdown_medium_p999,
  slowdown_large_p50,
  slowdown_large_p99,
  slowdown_large_p999,
  queue_max_bytes,
  queue_mean_bytes,
  pause_us,
  drops,
  retransmitted_bytes,
  jain_fairness,
  control_overhead,
};
inline constexpr std::size_t kMeasures = 21;

// The three measures that rank algorithms: work done, delay suffered, buffer needed.
inline constexpr std::array<Measure, 3> kRanked{Measure::efficiency, Measure::slowdown_p99,
                                                Measure::queue_max_bytes};

struct MeasureSpec {
  Measure measure;
  std::string_view name;  // key in the file
  std::string_view label;
  experiment::Unit unit;
  experiment::Better better;
  std::string_view meaning;
};

constexpr std::size_t index_of(Measure measure) { return static_cast<std::size_t>(measure); }
const std::array<MeasureSpec, kMeasures>& measure_table();
inline const MeasureSpec& spec_of(Measure measure) { return measure_table()[index_of(measure)]; }
std::optional<Measure> measure_by_name(std::string_view name);

// NaN: does not apply (no message of that size, unlike messages for fairness).
class Measures {
 public:
  Measures() { values_.fill(std::numeric_limits<double>::quiet_NaN()); }
  double& operator[](Measure measure) { return values_[index_of(measure)]; }
  double operator[](Measure measure) const { return values_[index_of(measure)]; }

 private:
  std::array<double, kMeasures> values_;
};

// A message that was started. One that was outstanding when the run ended has its age as `took`.
struct Message {
  std::uint32_t src = 0;
  std::uint32_t dst = 0;
  std::uint64_t bytes = 0;
  Picos start{0};
  Picos took{0};
  Picos ideal{0};  // alone on an empty fabric
  bool completed = true;
};

// p50, p99 and p99.9 (nearest rank) of took / ideal: of all messages and by size, as experiments
// bin them.
void slowdown_measures(std::span<const Message> messages, Measures& out);

// Where no collective has an ideal time: the least time in which the hosts' links can carry these
// messages, whatever the algorithm, over the time from the first start to the last completion. NaN
// if a message did not complete.
double makespan_efficiency(std::span<const Message> messages);

// The payload that the hosts' links can carry until `at`, whatever the algorithm: the lesser of
// what senders can send and what receivers can take, each port working whenever it has something to
// do. What was delivered by then, divided by this, is the efficiency of open-loop traffic.
double deliverable_bytes(std::span<const Message> messages, Picos at);

}  // namespace paceline::league

// Constraints that every parameter set must keep, whatever it gains: an objective alone learns to
// switch congestion control off. They are judged on the most recent windows, so that a breach is
// seen long before the end of a block.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "control/tuner/online/observation/window.h"

namespace paceline::tuner::online {

struct Constraints {
  double pause_share = 0.001;       // of the time, of the link
  double delay_p99_ns = 0;          // over the shortest; 0: no bound (cadence: 1.5 T)
  double queue_p99_bytes = 0;       // 0: no bound (dcqcn: half the buffer)
  double jain = 0.85;               // at least
  double cpu_share = 0.9;           // of the worker's core
  std::uint64_t retransmitted = 0;  // packets within the span, with signs of congestion; none
};

enum class Constraint : std::uint8_t { loss, pause, delay, queue, fairness, cpu };
const char* to_string(Constraint constraint);

struct Breach {
  Constraint constraint{};
  std::string words;  // "paused 1.2 % of the time, at most 0.1 %"
};

// The first constraint that the sum of windows breaks. Time paused is compared with `span_ns`, or
// with the windows' own span if it is longer: one short pause in the first window of a block is not
// a breach. Lost packets are blamed on the parameters if it is known where they were dropped, or if
// packets were marked or queued at the same time; loss without any sign of congestion is blamed on
// the link.
std::optional<Breach> breach_of(const Window& sum, const Constraints& most,
                                std::int64_t span_ns = 0);

// The windows of the last `span_ns`, judged as one. Their messages are not kept.
class ConstraintWatch {
 public:
  ConstraintWatch(Constraints constraints, std::int64_t span_ns)
      : constraints_(constraints), span_ns_(span_ns) {}

  std::optional<Breach> add(const Window& window);
  void clear() { windows_.clear(); }
  const std::deque<Window>& windows() const { return windows_; }

 private:
  Constraints constraints_;
  std::int64_t span_ns_;
  std::deque<Window> windows_;
};

}  // namespace paceline::tuner::online

#include "control/tuner/online/observation/constraints.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline::tuner::online {

const char* to_string(Constraint constraint) {
  switch (constraint) {
    case Constraint::loss:
      return "loss";
    case Constraint::pause:
      return "pause";
    case Constraint::delay:
      return "delay";
    case Constraint::queue:
      return "queue";
    case Constraint::fairness:
      return "fairness";
    case Constraint::cpu:
      return "cpu";
  }
  return "";
}

std::optional<Breach> breach_of(const Window& sum, const Constraints& most, std::int64_t span_ns) {
  if (sum.dropped > 0) {
    return Breach{Constraint::loss,
                  fmt::format("{} packets dropped, allowed is none", sum.dropped)};
  }
  const bool congested = sum.ce_packets > 0 || sum.cnps_received > 0 || sum.paused_ns > 0;
  if (congested && sum.retransmitted > most.retransmitted) {
    return Breach{Constraint::loss,
                  fmt::format("{} packets sent again while others were marked, at most {}",
                              sum.retransmitted, most.retransmitted)};
  }
  const double paused = static_cast<double>(sum.paused_ns) /
                        std::max(online::span_ns(sum), static_cast<double>(span_ns));
  if (paused > most.pause_share) {
    return Breach{Constraint::pause, fmt::format("paused {:.3g} % of the time, at most {:.3g} %",
                                                 paused * 100, most.pause_share * 100)};
  }
  if (most.delay_p99_ns > 0 && sum.delay_p99_ns > most.delay_p99_ns) {
    return Breach{Constraint::delay,
                  fmt::format("p99 of the delay over the shortest {:.3g} us, at most {:.3g} us",
                              sum.delay_p99_ns / 1000, most.delay_p99_ns / 1000)};
  }
  if (most.queue_p99_bytes > 0 && sum.queue_p99_bytes > most.queue_p99_bytes) {
    return Breach{Constraint::queue,
                  fmt::format("p99 of the queue {:.3g} kB, at most {:.3g} kB",
                              sum.queue_p99_bytes / 1000, most.queue_p99_bytes / 1000)};
  }
  if (sum.jain >= 0 && sum.jain < most.jain) {
    return Breach{Constraint::fairness,
                  fmt::format("Jain's index over equal channels {:.3g}, at least {:.3g}", sum.jain,
                              most.jain)};
  }
  if (sum.cpu_share > most.cpu_share) {
    return Breach{Constraint::cpu,
                  fmt::format("the worker needs {:.3g} % of its core, at most {:.3g} %",
                              sum.cpu_share * 100, most.cpu_share * 100)};
  }
  return std::nullopt;
}

std::optional<Breach> ConstraintWatch::add(const Window& window) {
  windows_.push_back(window);
  windows_.back().messages = {};
  while (windows_.front().begin_ns < window.end_ns - span_ns_ && windows_.size() > 1) {
    windows_.pop_front();
  }
  Window sum;
  for (const Window& each : windows_) online::add(sum, each);
  return breach_of(sum, constraints_, span_ns_);
}

}  // namespace paceline::tuner::online

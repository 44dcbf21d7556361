// The same run in virtual time and in real time, side by side: how deep the queues were and how
// fast each host sent, window by window. Windows in which the host stopped this process, and those
// at the start, do not count; if the world's clock was held, no window contains a stop.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/driver/virtual/virtual_world.h"

namespace paceline::tools {

struct AgreementWindow {
  Picos begin{0};
  Picos end{0};
  double queue_bytes = 0;     // in all switches, the mean of the looks
  std::vector<double> rates;  // by host: payload sent, in bits per second
};

// Looks at a world while it runs (RunControl::sample, every distance()), and makes windows of it.
class WindowRecorder {
 public:
  static constexpr unsigned kLooks = 64;  // of a window

  explicit WindowRecorder(Picos window) : distance_{window / kLooks} {}

  Picos distance() const { return distance_; }
  Picos window() const { return distance_ * kLooks; }
  void look(VirtualWorld& world, Picos at);
  // Only complete windows, one after the other from time 0.
  const std::vector<AgreementWindow>& windows() const { return windows_; }

 private:
  Picos distance_;
  double queued_ = 0;
  unsigned looks_ = 0;
  std::vector<std::uint64_t> sent_;  // by host, at the end of the last window
  std::vector<AgreementWindow> windows_;
};

struct Agreement {
  std::size_t windows = 0;  // that both runs have
  std::size_t warm_up = 0;  // windows that are not counted, from the start
  std::size_t stopped = 0;  // and those in which the host stopped us
  std::size_t counted = 0;
  // Medians over the windows counted: of the queue; of all senders' rates; of their sum.
  struct Side {
    double queue_bytes = 0;
    double rate = 0;
    double total_rate = 0;
  };
  Side virtual_time;
  Side real_time;
  // Relative to virtual time.
  double queue_difference = 0;
  double rate_difference = 0;
  double total_difference = 0;

  // Allowed are 10 %, and of the queue always this: see queue_allowed().
  double queue_allowed = 0;
  static constexpr double kClose = 0.1;
  static constexpr std::size_t kFewest = 20;  // windows, to say anything
  bool enough() const { return counted >= kFewest; }
  bool close() const;
};

// Bytes by which queues may differ: what delays a packet by as much as hosts may be late
// (RealTimeReport::tolerance), or a packet of each sender, because that much depends on whether
// independent senders happen to be in step. In virtual time equal rates stay in step.
double queue_allowed(const RealTimeReport& report, Rate rate, std::size_t senders,
                     std::uint32_t packet_bytes);

// senders: the hosts whose rates count. queue_allowed: bytes, see there.
Agreement compare(const std::vector<AgreementWindow>& virtual_time,
                  const std::vector<AgreementWindow>& real_time, const RealTimeReport& report,
                  const std::vector<std::uint32_t>& senders, double queue_allowed, Picos warm_up);

}  // namespace paceline::tools

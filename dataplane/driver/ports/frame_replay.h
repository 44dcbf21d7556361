// Sends the frames of a capture through a port unchanged, at the distances at which they were
// captured, faster or slower, or as fast as the port takes them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "dataplane/base/numbers/histogram.h"
#include "dataplane/driver/clock/wall_clock.h"
#include "dataplane/port/capture/capture_reader.h"
#include "dataplane/port/port.h"

namespace paceline {

struct FrameReplayOptions {
  double speed = 1;                          // 2: half the distances; 0: no distances
  std::uint64_t frames = ~std::uint64_t{0};  // at most
  // A port that takes nothing for this long is given up.
  Picos patience = picos_from_micros(2'000'000);
  const std::atomic<bool>* stop = nullptr;
};

struct FrameReplayReport {
  std::uint64_t sent = 0;
  std::uint64_t bytes = 0;     // of the frames
  std::uint64_t received = 0;  // came in meanwhile, and were discarded
  std::uint64_t out_of_order =
      0;              // frames captured before the one that precedes them: sent at once
  Histogram late_ns;  // against the distances of the file, those that have any
  Picos elapsed{0};
};

class FrameReplay {
 public:
  // Both outlive it. `port` is used by the calling thread.
  FrameReplay(Port& port, WallClock& clock, const FrameReplayOptions& options);
  ~FrameReplay();
  FrameReplay(const FrameReplay&) = delete;
  FrameReplay& operator=(const FrameReplay&) = delete;

  // Sends all frames of one file; the report continues from file to file. False: see error(), or it
  // was stopped.
  bool run(CaptureReader& reader);
  const FrameReplayReport& report() const { return report_; }
  const std::string& error() const { return error_; }
  bool done() const { return accepted_ == options_.frames; }

 private:
  bool take(const FrameRead& frame);
  bool flush();
  void receive();
  bool stopped() const {
    return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
  }

  static constexpr std::size_t kBurst = 32;

  Port& port_;
  WallClock& clock_;
  FrameReplayOptions options_;
  FrameReplayReport report_;
  std::string error_;
  std::array<Packet*, kBurst> waiting_{};
  std::size_t count_ = 0;
  std::uint64_t accepted_ = 0;  // sent or waiting
};

}  // namespace paceline

// The signature of a workload as a host sees it. A parameter set is good or bad for a signature:
// two workloads with one signature are treated alike, and knowledge about one signature is not
// applied to another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "control/tuner/online/observation/window.h"

namespace paceline::tuner::online {

struct Signature {
  std::uint32_t load = 0;    // decile of the line that is used, 0..9; the busier direction
  std::uint32_t degree = 0;  // p95 of the senders at a time, as a power of two, 0..kDegrees - 1
  std::array<double, telemetry::kMessageSizes> bytes{};  // shares by size, of begun messages
  bool core_marks = false;  // packets were marked while this NIC's own link was not busy
  double link_gbps = 0;     // of the NIC; 0: unknown, matches any

  // "load 7, 16 senders, bytes 0.1/0.3/0.6, marks in the core"
  std::string words() const;
  // The name of the bucket: equal for signatures of the same context. Shares are in quarters. The
  // link of a NIC does not change, so it is not part of the name.
  std::string key() const;
  friend bool operator==(const Signature&, const Signature&) = default;
};

inline constexpr std::size_t kDegrees = 16;  // 0, 1, 2, 3-4, 5-8, ... senders
std::size_t degree_bin(std::uint32_t senders);
std::uint32_t degree_senders(std::uint32_t bin);  // the most senders of a bin

// 0 for the same; 1 about where a preset for one says nothing of the other.
double distance(const Signature& a, const Signature& b);

// Marks of the core are those of windows in which this NIC's own receiving link was below this
// share of its rate, and more than kCoreMarkShare of the packets.
inline constexpr double kQuietLink = 0.5;
inline constexpr double kCoreMarkShare = 0.001;

// Adds windows up to a signature.
class SignatureBuilder {
 public:
  void add(const Window& window);
  std::uint32_t windows() const { return state_.windows; }
  // Messages begun in them.
  std::uint64_t messages() const;
  Signature signature() const;

  // The mix: how many messages of each size were begun, and how many windows had each degree.
  struct Mix {
    std::array<std::uint64_t, telemetry::kMessageSizes> sizes{};
    std::array<std::uint64_t, kDegrees> degrees{};
    friend bool operator==(const Mix&, const Mix&) = default;
  };
  const Mix& mix() const { return state_.mix; }
  double offered_bps() const;

  struct State {
    std::uint32_t windows = 0;
    Mix mix;
    std::array<std::uint64_t, telemetry::kMessageSizes> bytes{};
    std::uint64_t tx_bytes = 0;
    std::uint64_t rx_bytes = 0;
    std::uint64_t quiet_packets = 0;  // received while the link was quiet
    std::uint64_t quiet_marks = 0;
    std::int64_t span_ns = 0;
    std::uint64_t line_bps = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  // For saving.
  const State& state() const { return state_; }
  SignatureBuilder() = default;
  explicit SignatureBuilder(const State& state) : state_(state) {}

 private:
  State state_;
};

}  // namespace paceline::tuner::online

// The answer of an algorithm: how fast, how much, and when to ask it again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "dataplane/base/units.h"

namespace paceline::cc {

// The limiter in force: the cheapest diagnosis there is. Recorded as time shares per context and
// arm.
enum class Limiter : std::uint8_t {
  application,  // nothing to send
  grant,        // the receiver's grant
  uplink,       // share of the own port
  path,         // congestion seen on the path (reactive algorithms: always this one)
  window,       // bytes in flight
  credit,       // cumulative ceiling or transport credits
  port,         // the port itself: line rate, pause
};
inline constexpr unsigned kLimiters = 7;
inline constexpr std::array<std::string_view, kLimiters> kLimiterNames{
    "application", "grant", "uplink", "path", "window", "credit", "port"};

// "unknown" for any other number, which may come from a file.
constexpr std::string_view limiter_name(Limiter limiter) {
  const auto at = static_cast<std::size_t>(limiter);
  return at < kLimiters ? kLimiterNames[at] : "unknown";
}

inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

struct Decision {
  Rate rate{};                              // pacing rate; 0 = do not send
  std::uint64_t window_bytes = kUnlimited;  // cap of inflight bytes
  std::uint64_t ceiling = kUnlimited;       // cap of sent_total
  Nanos wake_at = kNeverNanos;            // deliver `tick` no later than the first send after this
  std::uint64_t wake_bytes = kUnlimited;  // deliver `tick` once sent_bytes reaches this
  std::uint16_t path = 0;                 // path entropy index wanted
  Limiter limiter = Limiter::path;
  bool request = false;   // proactive: send a REQUEST now (fill_request is called)
  bool fallback = false;  // proactive: no grant to be had; the fallback algorithm decides for now
  bool urgent = false;    // due packets go before those of contexts without it (start bytes)
  bool timed = false;     // wake_at is a real timer: deliver `tick` then even when nothing is sent
  // Not 0: packets of one queue pair go in several traffic classes, and packet_class (dispatch.h)
  // gives the class of each. Not a bool, because plug-ins have padding here.
  std::uint8_t classed = 0;
};

}  // namespace paceline::cc

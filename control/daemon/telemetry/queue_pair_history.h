// The last minute of each queue pair, looked at once a second: what explain() judges. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "dataplane/telemetry/segment.h"

namespace paceline::daemon {

struct QueuePairLook {
  std::int64_t unix_ns = 0;
  telemetry::QueuePairRecord record;
};

class QueuePairHistory {
 public:
  static constexpr std::size_t kLooks = 61;  // a minute has 60 seconds between its looks
  // How many queue pairs are followed, over all NICs; any others have no history.
  static constexpr std::size_t kMost = 4096;

  // All records of a NIC that are valid at that time. Queue pairs that are gone are forgotten.
  void add(std::uint32_t nic, std::int64_t unix_ns,
           std::span<const telemetry::QueuePairRecord> records);
  // NICs from index `nics` on are gone.
  void keep_nics(std::uint32_t nics);
  void clear() { pairs_.clear(); }

  // Oldest first; empty: not followed.
  std::vector<QueuePairLook> looks(std::uint32_t nic, std::uint32_t number) const;
  std::vector<std::uint32_t> numbers(std::uint32_t nic) const;
  std::size_t followed() const { return pairs_.size(); }

 private:
  struct Key {
    std::uint32_t nic = 0;
    std::uint32_t number = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  std::map<Key, std::deque<QueuePairLook>> pairs_;
};

}  // namespace paceline::daemon

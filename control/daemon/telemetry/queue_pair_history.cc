#include "control/daemon/telemetry/queue_pair_history.h"

#include <iterator>

namespace paceline::daemon {

void QueuePairHistory::add(std::uint32_t nic, std::int64_t unix_ns,
                           std::span<const telemetry::QueuePairRecord> records) {
  for (const telemetry::QueuePairRecord& record : records) {
    if (record.number == 0) continue;
    auto at = pairs_.find({nic, record.number});
    if (at == pairs_.end()) {
      if (pairs_.size() >= kMost) continue;
      at = pairs_.emplace(Key{nic, record.number}, std::deque<QueuePairLook>()).first;
    }
    std::deque<QueuePairLook>& looks = at->second;
    // The number was given to another queue pair: older looks are not its history.
    if (!looks.empty()) {
      const telemetry::QueuePairRecord& before = looks.back().record;
      if (before.pid != record.pid || before.completions > record.completions ||
          before.tx_bytes > record.tx_bytes) {
        looks.clear();
      }
    }
    looks.push_back({unix_ns, record});
    if (looks.size() > kLooks) looks.pop_front();
  }
  for (auto at = pairs_.lower_bound({nic, 0}); at != pairs_.end() && at->first.nic == nic;) {
    at = at->second.back().unix_ns == unix_ns ? std::next(at) : pairs_.erase(at);
  }
}

void QueuePairHistory::keep_nics(std::uint32_t nics) {
  pairs_.erase(pairs_.lower_bound({nics, 0}), pairs_.end());
}

std::vector<QueuePairLook> QueuePairHistory::looks(std::uint32_t nic, std::uint32_t number) const {
  const auto at = pairs_.find({nic, number});
  if (at == pairs_.end()) return {};
  return {at->second.begin(), at->second.end()};
}

std::vector<std::uint32_t> QueuePairHistory::numbers(std::uint32_t nic) const {
  std::vector<std::uint32_t> out;
  for (auto at = pairs_.lower_bound({nic, 0}); at != pairs_.end() && at->first.nic == nic; ++at) {
    out.push_back(at->first.number);
  }
  return out;
}

}  // namespace paceline::daemon

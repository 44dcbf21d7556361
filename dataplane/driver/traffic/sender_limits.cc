#include "dataplane/driver/traffic/sender_limits.h"

#include <algorithm>

namespace paceline {

void SenderLimits::end(std::uint32_t message, std::uint32_t collective, const Times& context) {
  const auto it = under_way_.find(message);
  if (it == under_way_.end()) return;
  Times& sums = by_collective_[collective];
  for (std::size_t i = 0; i < sums.size(); ++i) {
    // Less than before: the queue pair began with a new context.
    sums[i] += std::max<std::int64_t>(0, context[i] - it->second[i]);
  }
  under_way_.erase(it);
}

}  // namespace paceline

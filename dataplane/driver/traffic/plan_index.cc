#include "dataplane/driver/traffic/plan_index.h"

#include <algorithm>
#include <utility>

namespace paceline {

PlanIndex::PlanIndex(const MessagePlan& plan, std::uint32_t hosts)
    : own_begin_(hosts + std::size_t{1}),
      dependants_begin_(hosts + std::size_t{1}),
      planned_(hosts),
      posts_(hosts),
      peers_(hosts),
      announced_(hosts) {
  std::vector<std::uint32_t> waits(plan.messages.size());
  for (const Join& join : plan.joins) {
    ++waits[join.message];
    ++dependants_begin_[plan.messages[join.message].src + std::size_t{1}];
  }
  for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
    const PlannedMessage& m = plan.messages[id];
    ++planned_[m.src];
    if (m.after != kNoMessage) {
      ++dependants_begin_[m.src + std::size_t{1}];
    } else if (waits[id] == 0) {
      ++own_begin_[m.src + std::size_t{1}];
    }
    if (m.nvlink || m.computes) continue;
    posts_[m.src] += std::max<std::uint64_t>(1, (m.bytes + kPieceBytes - 1) / kPieceBytes);
    if (m.notify) ++announced_[m.dst];
  }
  for (std::size_t h = 0; h < hosts; ++h) {
    own_begin_[h + 1] += own_begin_[h];
    dependants_begin_[h + 1] += dependants_begin_[h];
  }
  own_.resize(own_begin_[hosts]);
  dependants_.resize(dependants_begin_[hosts]);
  std::vector<std::size_t> own_end(own_begin_);
  std::vector<std::size_t> dependants_end(dependants_begin_);
  for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
    const PlannedMessage& m = plan.messages[id];
    if (m.after != kNoMessage) {
      dependants_[dependants_end[m.src]++] = {m.after, id};
    } else if (waits[id] == 0) {
      own_[own_end[m.src]++] = id;
    }
  }
  for (const Join& join : plan.joins) {
    dependants_[dependants_end[plan.messages[join.message].src]++] = {join.after, join.message};
  }
  const auto place = [](auto& list, std::size_t at) {
    return list.begin() + static_cast<std::ptrdiff_t>(at);
  };
  for (std::size_t h = 0; h < hosts; ++h) {
    std::stable_sort(place(own_, own_begin_[h]), place(own_, own_begin_[h + 1]),
                     [&plan](std::uint32_t a, std::uint32_t b) {
                       return plan.messages[a].start < plan.messages[b].start;
                     });
    std::sort(place(dependants_, dependants_begin_[h]),
              place(dependants_, dependants_begin_[h + 1]));
  }
  count_peers(plan);
}

void PlanIndex::count_peers(const MessagePlan& plan) {
  struct Pair {
    std::uint32_t a;
    std::uint32_t b;
    std::uint8_t traffic_class;
    auto operator<=>(const Pair&) const = default;
  };
  std::vector<Pair> pairs;
  pairs.reserve(plan.messages.size());
  for (const PlannedMessage& m : plan.messages) {
    if (m.src != m.dst && !m.nvlink)
      pairs.push_back({std::min(m.src, m.dst), std::max(m.src, m.dst), m.traffic_class});
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  for (const Pair& pair : pairs) {
    ++peers_[pair.a][pair.traffic_class];
    ++peers_[pair.b][pair.traffic_class];
  }
}

}  // namespace paceline

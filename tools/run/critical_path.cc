#include "tools/run/critical_path.h"

#include <algorithm>

namespace paceline::tools {

namespace {

class PathFinder {
 public:
  explicit PathFinder(const PlanTimes& times)
      : messages_(times.plan->messages),
        records_(*times.records),
        causes_(times.causes),
        joins_(times.plan->joins) {
    std::sort(joins_.begin(), joins_.end());
  }

  CriticalPath back_from(std::uint32_t at) const {
    CriticalPath path;
    for (Picos end = records_[at].completed; at != kNoMessage;) {
      const PlannedMessage& m = messages_[at];
      const Picos begin = records_[at].ready;
      if (!m.computes || m.gap.count > 0) {
        path.steps.push_back({at, begin, end});
        (m.computes ? path.computing : m.nvlink ? path.nvlink : path.network) += end - begin;
      }
      // A gap before a message counts as computing.
      end = m.computes ? begin : begin - m.gap;
      if (!m.computes) path.computing += m.gap;
      // The chain begins with what began because its time had come.
      at = m.start.count > 0 && begin == m.start ? kNoMessage : last_before(at, end);
    }
    std::reverse(path.steps.begin(), path.steps.end());
    return path;
  }

 private:
  // What the message waited for until `end`: its own host's message that ended then, else the
  // arrival whose sender was told last.
  std::uint32_t last_before(std::uint32_t id, Picos end) const {
    if (causes_ != nullptr) return (*causes_)[id];
    std::uint32_t last = kNoMessage;
    const auto consider = [&](std::uint32_t other) {
      if (last == kNoMessage || rank_of(id, other, end) > rank_of(id, last, end)) last = other;
    };
    if (messages_[id].after != kNoMessage) consider(messages_[id].after);
    auto join = std::lower_bound(joins_.begin(), joins_.end(), Join{id, 0});
    for (; join != joins_.end() && join->message == id; ++join) consider(join->after);
    return last;
  }
  std::pair<bool, Picos> rank_of(std::uint32_t id, std::uint32_t other, Picos end) const {
    const bool own = messages_[other].src == messages_[id].src;
    return {own && records_[other].completed == end, own && records_[other].completed != end
                                                         ? records_[other].ready
                                                         : records_[other].completed};
  }

  const std::vector<PlannedMessage>& messages_;
  const std::vector<MessageRecord>& records_;
  const std::vector<std::uint32_t>* causes_;
  std::vector<Join> joins_;
};

}  // namespace

CriticalPath critical_path(const PlanTimes& times, std::uint32_t last) {
  return PathFinder(times).back_from(last);
}

}  // namespace paceline::tools

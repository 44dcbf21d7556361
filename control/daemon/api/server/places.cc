#include "control/daemon/api/server/places.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline::daemon {

std::string Places::take(const Caller& caller) {
  if (taken_ >= limits_.most) {
    return fmt::format("{}: there are {} already; allowed: {}", what_, taken_, limits_.most);
  }
  if (!caller.may_write) {
    const auto own = taken_by_.find(caller.name);
    if (own != taken_by_.end() && own->second >= limits_.most_each) {
      return fmt::format("{}: {} has {} already; allowed to a caller who may only read: {}", what_,
                         caller.name, own->second, limits_.most_each);
    }
    const std::size_t open = limits_.most - std::min(limits_.kept, limits_.most);
    if (taken_by_readers_ >= open) {
      return fmt::format(
          "{}: callers who may only read have {} already; the other {} are kept for those who may "
          "write",
          what_, taken_by_readers_, limits_.most - open);
    }
    ++taken_by_readers_;
    ++taken_by_[caller.name];
  }
  ++taken_;
  return {};
}

void Places::leave(const Caller& caller) {
  --taken_;
  if (caller.may_write) return;
  --taken_by_readers_;
  const auto own = taken_by_.find(caller.name);
  if (--own->second == 0) taken_by_.erase(own);
}

}  // namespace paceline::daemon

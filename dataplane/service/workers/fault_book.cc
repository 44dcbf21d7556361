#include "dataplane/service/workers/fault_book.h"

#include <algorithm>

#include "dataplane/base/numbers/random.h"
#include "dataplane/config/fault_kinds.h"
#include "dataplane/driver/clock/tsc_clock.h"

namespace paceline::service {

namespace {

bool is_of_clock(const config::LinkFault& fault) {
  const config::FaultKindInfo* const kind = config::find_fault_kind(fault.action);
  return kind != nullptr && kind->of_clock;
}

}  // namespace

Picos FaultBook::steady_now() { return picos_from_nanos(raw_monotonic_time().count); }

bool FaultBook::take_back(const config::LinkFault& later, const std::vector<std::uint32_t>& links,
                          Entry& entry) const {
  const bool of_clock = is_of_clock(entry.fault);
  if (later.action == entry.fault.action) return later.target == entry.fault.target && !of_clock;
  if (of_clock) return later.action == "clear" && later.target == entry.fault.target;
  if (later.action != "clear" && (later.action != "up" || entry.fault.action != "down"))
    return false;
  const auto taken_back = [&](std::uint32_t link) {
    return std::count(links.begin(), links.end(), link) != 0;
  };
  if (std::all_of(entry.links.begin(), entry.links.end(), taken_back)) return true;
  if (later.after.count == 0) std::erase_if(entry.links, taken_back);
  return false;
}

void FaultBook::add(Picos now, const config::LinkFault& fault, std::vector<std::uint32_t> links) {
  const Picos from = now + fault.after;
  for (Entry& entry : entries_) {
    if (!take_back(fault, links, entry)) continue;
    entry.until = earlier(entry.until, from);
    entry.right_at = earlier(entry.right_at, from);
  }
  if (fault.action == "clear" || fault.action == "up") return;
  drop_over(now);
  if (entries_.size() == kMost) entries_.erase(entries_.begin());
  Entry& entry = entries_.emplace_back();
  entry.fault = fault;
  entry.links = std::move(links);
  entry.from = from;
  if (fault.lasts.count == 0) return;
  entry.until = from + fault.lasts;
  if (fault.action == "clock_jump") entry.right_at = entry.until;
}

// A clock that has drifted is wrong until it is set right.
void FaultBook::drop_over(Picos now) {
  std::erase_if(entries_, [&](const Entry& entry) {
    return (is_of_clock(entry.fault) ? entry.right_at : entry.until) <= now;
  });
}

std::vector<FaultBook::Entry> FaultBook::not_over(Picos now) {
  drop_over(now);
  std::vector<Entry> out;
  std::copy_if(entries_.begin(), entries_.end(), std::back_inserter(out),
               [&](const Entry& entry) { return now < entry.until && entry.from < entry.until; });
  return out;
}

std::vector<FaultBook::Entry> FaultBook::of_clock(const std::string& nic) const {
  std::vector<Entry> out;
  std::copy_if(entries_.begin(), entries_.end(), std::back_inserter(out), [&](const Entry& entry) {
    return is_of_clock(entry.fault) && entry.fault.target == nic;
  });
  return out;
}

std::optional<std::uint32_t> FaultBook::collision(Picos now, std::uint64_t number) const {
  const auto hits = [&](const Entry& entry) {
    if (entry.fault.action != "hash_collision" || now < entry.from || entry.until <= now) {
      return false;
    }
    const double share =
        entry.fault.severity.value_or(config::find_fault_kind("hash_collision")->usual);
    return Random(entry.fault.seed, number).uniform() < share;
  };
  const auto found = std::find_if(entries_.begin(), entries_.end(), hits);
  if (found == entries_.end() || found->links.empty()) return std::nullopt;
  return found->links.front();
}

}  // namespace paceline::service

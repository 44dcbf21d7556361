#include "dataplane/neighbour/neighbour_table.h"

#include <bit>
#include <cassert>

namespace paceline::neighbour {
namespace {

// An address in use is asked for again at least this often, so that used_at is not older than that
// for a neighbour that we send to.
constexpr Picos kTouch = seconds(1);

}  // namespace

const char* to_string(NeighbourState state) {
  switch (state) {
    case NeighbourState::incomplete:
      return "incomplete";
    case NeighbourState::reachable:
      return "reachable";
    case NeighbourState::stale:
      return "stale";
    case NeighbourState::delay:
      return "delay";
    case NeighbourState::probe:
      return "probe";
    case NeighbourState::failed:
      return "failed";
    case NeighbourState::fixed:
      return "fixed";
  }
  return "unknown";
}

NeighbourTable::NeighbourTable(const NeighbourTiming& timing, const NeighbourLimits& limits,
                               Random random)
    : timing_(timing),
      capacity_(limits.capacity),
      heard_capacity_(limits.heard_capacity),
      random_(random),
      salt_(random_.next()),
      entries_(limits.capacity),
      index_(std::bit_ceil(std::size_t{limits.capacity} * 2), kNone),
      index_mask_(index_.size() - 1),
      timers_(limits.capacity) {
  for (std::uint32_t i = 0; i < capacity_; ++i) link(i, kFree);
}

// ---- index: linear probing, removal by moving back what would no longer be found ----

std::size_t NeighbourTable::slot_of(const wire::IpAddress& ip) const {
  return wire::mix64(wire::mix64(ip.high() ^ salt_) + ip.low()) & index_mask_;
}

std::uint32_t NeighbourTable::find(const wire::IpAddress& ip) const {
  for (std::size_t slot = slot_of(ip);; slot = (slot + 1) & index_mask_) {
    const std::uint32_t entry = index_[slot];
    if (entry == kNone || entries_[entry].ip == ip) return entry;
  }
}

void NeighbourTable::index_insert(std::uint32_t entry) {
  std::size_t slot = slot_of(entries_[entry].ip);
  while (index_[slot] != kNone) slot = (slot + 1) & index_mask_;
  index_[slot] = entry;
}

void NeighbourTable::index_erase(std::uint32_t entry) {
  std::size_t hole = slot_of(entries_[entry].ip);
  while (index_[hole] != entry) hole = (hole + 1) & index_mask_;
  for (std::size_t slot = (hole + 1) & index_mask_; index_[slot] != kNone;
       slot = (slot + 1) & index_mask_) {
    const std::size_t home = slot_of(entries_[index_[slot]].ip);
    // The entry stays if its home lies between the hole and its own slot.
    if (((slot - home) & index_mask_) < ((slot - hole) & index_mask_)) continue;
    index_[hole] = index_[slot];
    hole = slot;
  }
  index_[hole] = kNone;
}

// ---- lists ----

void NeighbourTable::unlink(std::uint32_t entry) {
  Neighbour& n = entries_[entry];
  Ends& ends = lists_[n.list];
  (n.older == kNone ? ends.oldest : entries_[n.older].newer) = n.newer;
  (n.newer == kNone ? ends.newest : entries_[n.newer].older) = n.older;
  --ends.size;
}

void NeighbourTable::link(std::uint32_t entry, List list) {
  Neighbour& n = entries_[entry];
  Ends& ends = lists_[list];
  n.list = list;
  n.newer = kNone;
  n.older = ends.newest;
  (ends.newest == kNone ? ends.oldest : entries_[ends.newest].newer) = entry;
  ends.newest = entry;
  ++ends.size;
}

// ---- places ----

void NeighbourTable::forget(std::uint32_t entry) {
  withdraw(entry);
  timers_.cancel(entry);
  index_erase(entry);
  unlink(entry);
  link(entry, kFree);
}

std::uint32_t NeighbourTable::place_for_active(Picos now) {
  if (lists_[kFree].oldest != kNone) return lists_[kFree].oldest;
  std::uint64_t* counter = &counters_.evicted_heard;
  std::uint32_t victim = lists_[kHeard].oldest;
  if (victim == kNone) {
    victim = lists_[kFailed].oldest;
    counter = &counters_.evicted_failed;
  }
  if (victim == kNone && lists_[kStale].oldest != kNone) {
    const std::uint32_t oldest = lists_[kStale].oldest;
    if (saturating_add(entries_[oldest].used_at, timing_.evict_idle) <= now) victim = oldest;
    counter = &counters_.evicted_stale;
  }
  if (victim == kNone) return kNone;
  ++*counter;
  forget(victim);
  return victim;
}

std::uint32_t NeighbourTable::place_for_heard() {
  if (lists_[kFree].oldest != kNone && lists_[kHeard].size < heard_capacity_) {
    return lists_[kFree].oldest;
  }
  const std::uint32_t victim = lists_[kHeard].oldest;
  if (victim == kNone) return kNone;
  ++counters_.evicted_heard;
  forget(victim);
  return victim;
}

std::uint32_t NeighbourTable::create(const wire::IpAddress& ip, bool heard, std::uint8_t local) {
  const std::uint32_t entry = lists_[kFree].oldest;
  Neighbour& n = entries_[entry];
  unlink(entry);
  n = Neighbour{};
  n.ip = ip;
  n.heard = heard;
  n.local = local;
  link(entry, heard ? kHeard : kBusy);
  index_insert(entry);
  ++counters_.created;
  return entry;
}

// ---- states ----

void NeighbourTable::withdraw(std::uint32_t entry) {
  Neighbour& n = entries_[entry];
  if (!n.handed_out) return;
  n.handed_out = false;
  ++epoch_;
}

void NeighbourTable::become(std::uint32_t entry, NeighbourState state, Picos deadline) {
  Neighbour& n = entries_[entry];
  List list = kBusy;
  if (n.heard) {
    list = kHeard;
  } else if (state == NeighbourState::failed) {
    list = kFailed;
  } else if (state == NeighbourState::stale) {
    list = kStale;
  }
  n.state = state;
  unlink(entry);
  link(entry, list);
  timers_.schedule(entry, deadline);
}

void NeighbourTable::become_stale(Picos now, std::uint32_t entry) {
  const Neighbour& n = entries_[entry];
  withdraw(entry);  // the next packet must be noticed
  const Picos until = n.heard ? now + timing_.heard_lifetime
                              : later(n.used_at + timing_.stale_lifetime, now + Picos{1});
  become(entry, NeighbourState::stale, until);
}

void NeighbourTable::become_reachable(Picos now, std::uint32_t entry) {
  const auto base = static_cast<std::uint64_t>(timing_.reachable.count);
  const Picos lasts{static_cast<std::int64_t>(base / 2 + random_.below(base + 1))};
  become(entry, NeighbourState::reachable, now + later(lasts, Picos{1}));
}

void NeighbourTable::start_asking(Picos now, std::uint32_t entry) {
  entries_[entry].solicits = 0;
  become(entry, NeighbourState::incomplete, now);  // due at once
}

void NeighbourTable::set_mac(std::uint32_t entry, const wire::MacAddress& mac) {
  withdraw(entry);
  entries_[entry].mac = mac;
}

// ---- sending ----

NeighbourTable::Route NeighbourTable::use(Picos now, const wire::IpAddress& ip,
                                          std::uint8_t local) {
  std::uint32_t entry = find(ip);
  if (entry == kNone) {
    if (place_for_active(now) == kNone) {
      ++counters_.refused_full;
      return {Use::full, kNone, {}, {}};
    }
    entry = create(ip, false, local);
    entries_[entry].used_at = now;
    start_asking(now, entry);
    return {Use::wait, entry, {}, {}};
  }
  Neighbour& n = entries_[entry];
  n.used_at = now;
  n.local = local;
  n.heard = false;
  Picos valid_until = now + kTouch;
  switch (n.state) {
    case NeighbourState::incomplete:
      return {Use::wait, entry, {}, {}};
    case NeighbourState::failed:
      return {Use::failed, entry, {}, {}};
    case NeighbourState::stale:
      become(entry, NeighbourState::delay, now + timing_.delay_first_probe);
      break;
    case NeighbourState::reachable:
      if (n.list == kHeard) become(entry, n.state, timers_.deadline_of(entry));
      valid_until = earlier(valid_until, timers_.deadline_of(entry));
      break;
    case NeighbourState::fixed:
      valid_until = kNever;
      break;
    case NeighbourState::delay:
    case NeighbourState::probe:
      break;
  }
  n.handed_out = true;
  return {Use::send, entry, n.mac, valid_until};
}

// ---- messages ----

std::uint32_t NeighbourTable::on_request(Picos now, const wire::IpAddress& ip,
                                         const wire::MacAddress& mac, std::uint8_t local,
                                         bool create_it) {
  std::uint32_t entry = find(ip);
  if (entry == kNone) {
    if (!create_it) {
      ++counters_.ignored;
      return kNone;
    }
    if (place_for_heard() == kNone) {
      ++counters_.refused_heard;
      return kNone;
    }
    entry = create(ip, true, local);
    entries_[entry].mac = mac;
    become_stale(now, entry);
    return kNone;
  }
  Neighbour& n = entries_[entry];
  switch (n.state) {
    case NeighbourState::fixed:
      if (n.mac != mac) ++counters_.refused_fixed;
      return kNone;
    case NeighbourState::incomplete:
    case NeighbourState::failed:
      set_mac(entry, mac);
      become_stale(now, entry);
      ++counters_.resolved;
      return entry;
    default:
      break;
  }
  if (n.mac != mac) {
    ++counters_.address_changes;
    set_mac(entry, mac);
    become_stale(now, entry);
  } else if (n.heard && n.state == NeighbourState::stale) {
    become_stale(now, entry);  // the newest of the heard
  }
  return kNone;
}

std::uint32_t NeighbourTable::on_advertisement(Picos now, const Advertisement& a) {
  const std::uint32_t entry = find(a.ip);
  if (entry == kNone) {  // not created: nothing wants it
    ++counters_.ignored;
    return kNone;
  }
  Neighbour& n = entries_[entry];
  if (n.state == NeighbourState::fixed) {
    if (a.mac && *a.mac != n.mac) ++counters_.refused_fixed;
    return kNone;
  }
  if (n.state == NeighbourState::incomplete || n.state == NeighbourState::failed) {
    if (!a.mac) {
      ++counters_.ignored;
      return kNone;
    }
    set_mac(entry, *a.mac);
    n.router = a.router;
    ++counters_.resolved;
    if (a.solicited) {
      ++counters_.confirmed;
      become_reachable(now, entry);
    } else {
      become_stale(now, entry);
    }
    return entry;
  }
  const bool differs = a.mac && *a.mac != n.mac;
  if (differs && !a.overrides) {
    ++counters_.refused_override;
    if (n.state == NeighbourState::reachable) become_stale(now, entry);
    return kNone;
  }
  n.router = a.router;
  if (differs) {
    ++counters_.address_changes;
    set_mac(entry, *a.mac);
  }
  if (a.solicited) {
    ++counters_.confirmed;
    become_reachable(now, entry);
  } else if (differs) {
    become_stale(now, entry);
  }
  return kNone;
}

bool NeighbourTable::asked(const wire::IpAddress& ip) const {
  const std::uint32_t entry = find(ip);
  if (entry == kNone) return false;
  const Neighbour& n = entries_[entry];
  return (n.state == NeighbourState::incomplete || n.state == NeighbourState::probe) &&
         n.solicits != 0;
}

void NeighbourTable::confirm(Picos now, const wire::IpAddress& ip) {
  const std::uint32_t entry = find(ip);
  if (entry == kNone) return;
  switch (entries_[entry].state) {
    case NeighbourState::reachable:
    case NeighbourState::stale:
    case NeighbourState::delay:
    case NeighbourState::probe:
      ++counters_.confirmed;
      become_reachable(now, entry);
      return;
    default:
      return;  // without an address there is nothing to confirm
  }
}

// ---- time ----

NeighbourTable::Due NeighbourTable::solicit(Picos now, std::uint32_t entry) {
  Neighbour& n = entries_[entry];
  ++n.solicits;
  timers_.schedule(entry, now + timing_.retransmit);
  if (n.state == NeighbourState::probe) {
    ++counters_.solicits_unicast;
    return {Action::solicit_unicast, entry};
  }
  ++counters_.solicits_multicast;
  return {Action::solicit_multicast, entry};
}

NeighbourTable::Due NeighbourTable::next_due(Picos now) {
  for (std::uint32_t entry; (entry = timers_.pop_due(now)) != DeadlineTree::kNone;) {
    Neighbour& n = entries_[entry];
    switch (n.state) {
      case NeighbourState::incomplete:
        if (n.solicits < timing_.multicast_solicits) return solicit(now, entry);
        ++counters_.failed;
        become(entry, NeighbourState::failed, now + timing_.failed_hold);
        return {Action::failed, entry};
      case NeighbourState::reachable:
        become_stale(now, entry);
        break;
      case NeighbourState::delay:
        n.solicits = 0;
        become(entry, NeighbourState::probe, now);
        return solicit(now, entry);
      case NeighbourState::probe:
        if (n.solicits < timing_.unicast_solicits) return solicit(now, entry);
        if (n.used_at + timing_.retransmit * n.solicits < now - kTouch) {
          ++counters_.failed;
          forget(entry);
          break;
        }
        // Still in use: perhaps it has moved. RFC 4861 deletes the entry, and the next packet asks
        // again; asking right away saves that packet the wait.
        withdraw(entry);
        ++counters_.restarted;
        start_asking(now, entry);
        break;
      case NeighbourState::stale:
        // Sent to since the timer was set? Then it is in delay, not here.
        ++counters_.aged;
        forget(entry);
        break;
      case NeighbourState::failed:
        forget(entry);
        break;
      case NeighbourState::fixed:
        break;
    }
  }
  return {};
}

// ---- configuration, looking in ----

bool NeighbourTable::add_fixed(const wire::IpAddress& ip, const wire::MacAddress& mac) {
  std::uint32_t entry = find(ip);
  if (entry == kNone) {
    if (lists_[kFree].oldest == kNone) return false;
    entry = create(ip, false, 0);
  }
  entries_[entry].heard = false;
  set_mac(entry, mac);
  become(entry, NeighbourState::fixed, kNever);
  return true;
}

const char* NeighbourTable::check() const {
  std::uint32_t linked = 0;
  std::uint32_t indexed = 0;
  for (std::size_t l = 0; l < kLists; ++l) {
    std::uint32_t count = 0;
    std::uint32_t previous = kNone;
    for (std::uint32_t e = lists_[l].oldest; e != kNone; previous = e, e = entries_[e].newer) {
      const Neighbour& n = entries_[e];
      if (n.list != l || n.older != previous || ++count > capacity_) return "a list is broken";
      if (l == kFree) {
        if (timers_.contains(e)) return "a free place has a timer";
        continue;
      }
      if (find(n.ip) != e) return "an entry is not found by its address";
      if ((l == kHeard) != n.heard) return "heard and list disagree";
      if ((l == kFailed) != (n.state == NeighbourState::failed)) return "failed, in a wrong list";
      if ((l == kStale) != (n.state == NeighbourState::stale && !n.heard)) {
        return "stale, in a wrong list";
      }
      if (timers_.contains(e) == (n.state == NeighbourState::fixed)) return "a timer is missing";
    }
    if (count != lists_[l].size || previous != lists_[l].newest) return "a list's ends are wrong";
    linked += count;
  }
  for (const std::uint32_t e : index_) indexed += e != kNone ? 1U : 0U;
  if (linked != capacity_) return "an entry is in no list";
  if (indexed != size()) return "the index has another size";
  return lists_[kHeard].size > heard_capacity_ ? "too many heard neighbours" : "";
}

}  // namespace paceline::neighbour

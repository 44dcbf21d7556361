#include "tools/collective/rank/plan/plan_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "tools/collective/rank/plan/plan_routes.h"
#include "tools/collective/rank/rank_error.h"

namespace paceline::rank {

namespace {

// Index of `id` in a list that is sorted by id; the list's size if there is none.
template <class Entry>
std::size_t index_of(const std::vector<Entry>& list, std::uint32_t id) {
  const auto at =
      std::lower_bound(list.begin(), list.end(), id,
                       [](const Entry& e, std::uint32_t wanted) { return e.id < wanted; });
  return at == list.end() || at->id != id ? list.size()
                                          : static_cast<std::size_t>(at - list.begin());
}

}  // namespace

PlanRunner::PlanRunner(const PlanPart& part, std::uint32_t rank, const PlanMemory& memory,
                       RankLink& link)
    : part_(part),
      memory_(memory),
      link_(link),
      records_(part.sends.size()),
      waits_(part.sends.size()),
      lane_of_(part.sends.size()),
      connection_of_(part.sends.size()),
      posted_(part.sends.size()),
      arrived_(part.arrivals.size()) {
  list_lanes(rank);
  list_waits();
}

void PlanRunner::list_lanes(std::uint32_t rank) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers;
  for (std::size_t i = 0; i < part_.sends.size(); ++i) {
    const PlanSend& s = part_.sends[i];
    if (s.computes) continue;
    const auto [at, fresh] =
        numbers.try_emplace({s.to, s.lane}, static_cast<std::uint32_t>(lanes_.size()));
    lane_of_[i] = at->second;
    if (!fresh) continue;
    const bool pooled = s.lane == kPooledLane;
    Lane& lane = lanes_.emplace_back();
    lane.peer = s.to;
    lane.most = pooled ? 1 : kMostUnderWay;
    for (std::uint32_t slot = 0; slot < (pooled ? kPoolSize : 1); ++slot) {
      lane.channels.push_back(plan_channel(rank, s.to, s.lane, slot));
    }
    lane.under_way.resize(lane.channels.size());
  }
}

void PlanRunner::list_waits() {
  for (std::uint32_t i = 0; i < part_.sends.size(); ++i) {
    const PlanSend& s = part_.sends[i];
    waits_[i] = static_cast<std::uint32_t>(s.after.size());
    for (const std::uint32_t id : s.after) waiters_.emplace_back(id, i);
    if (s.after.empty()) due_.push({s.start, i});
  }
  std::sort(waiters_.begin(), waiters_.end());
}

void PlanRunner::begin_due(Picos now) {
  while (!due_.empty() && due_.top().at <= now) {
    const std::uint32_t send = due_.top().send;
    due_.pop();
    if (records_[send].ready.count < 0) {
      begin(now, send);
    } else {
      complete(now, send);  // it has computed
    }
  }
}

void PlanRunner::begin(Picos now, std::uint32_t send) {
  records_[send].ready = now;
  const PlanSend& s = part_.sends[send];
  if (s.computes) {
    due_.push({now + s.gap, send});
    return;
  }
  lanes_[lane_of_[send]].waiting.push_back(send);
  feed(lane_of_[send]);
}

// Posts as much as the connections take.
void PlanRunner::feed(std::uint32_t number) {
  Lane& lane = lanes_[number];
  for (std::uint32_t c = 0; c < lane.channels.size(); ++c) {
    while (!lane.waiting.empty() && lane.under_way[c] < lane.most) {
      const std::uint32_t send = lane.waiting.front();
      lane.waiting.pop_front();
      const PlanSend& s = part_.sends[send];
      link_.write({lane.peer, lane.channels[c]}, memory_.source(s.id), s.at, s.bytes, s.id);
      ++lane.under_way[c];
      connection_of_[send] = c;
      posted_[send] = true;
      ++totals_.sent;
      totals_.sent_bytes += s.bytes;
    }
  }
}

void PlanRunner::complete(Picos now, std::uint32_t send) {
  records_[send].completed = now;
  ++finished_;
  release(now, part_.sends[send].id);
}

// Message `id` has arrived or is complete: messages that waited only for it begin.
void PlanRunner::release(Picos now, std::uint32_t id) {
  auto at = std::lower_bound(waiters_.begin(), waiters_.end(), std::pair{id, 0U});
  for (; at != waiters_.end() && at->first == id; ++at) {
    const std::uint32_t send = at->second;
    if (--waits_[send] != 0) continue;
    records_[send].cause = id;
    const PlanSend& s = part_.sends[send];
    due_.push({later(s.start, s.computes ? now : now + s.gap), send});
  }
}

void PlanRunner::take(Picos now, const LinkEvent& event) {
  if (event.arrived) {
    take_arrival(now, event);
  } else {
    take_acknowledgement(now, event);
  }
}

void PlanRunner::take_arrival(Picos now, const LinkEvent& event) {
  const std::size_t number = index_of(part_.arrivals, event.word);
  if (number == part_.arrivals.size() || part_.arrivals[number].from != event.peer) {
    throw RankError(fmt::format("message {} from rank {} has arrived: it is none of the plan",
                                event.word, event.peer));
  }
  const PlanArrival& arrival = part_.arrivals[number];
  if (arrived_[number] || event.bytes != arrival.bytes) {
    throw RankError(fmt::format(
        "message {} from rank {} has arrived{} with {} bytes: expected are "
        "{} bytes, once",
        event.word, event.peer, arrived_[number] ? " again" : "", event.bytes, arrival.bytes));
  }
  arrived_[number] = true;
  ++finished_;
  ++totals_.received;
  totals_.received_bytes += arrival.bytes;
  if (const WrongBytes wrong = memory_.check(arrival); wrong.count != 0) {
    if (totals_.wrong_messages++ == 0) {
      totals_.wrong_message = arrival.id;
      totals_.first_wrong = wrong;
    }
    totals_.wrong_bytes += wrong.count;
  }
  release(now, arrival.id);
}

void PlanRunner::take_acknowledgement(Picos now, const LinkEvent& event) {
  const auto send = static_cast<std::uint32_t>(index_of(part_.sends, event.word));
  Lane& lane = lanes_[lane_of_[send]];
  --lane.under_way[connection_of_[send]];
  complete(now, send);
  feed(lane_of_[send]);
}

bool PlanRunner::somebody_waits(std::uint32_t id) const {
  const auto at = std::lower_bound(waiters_.begin(), waiters_.end(), std::pair{id, 0U});
  return at != waiters_.end() && at->first == id;
}

std::optional<PlanWait> PlanRunner::waits_for() const {
  for (std::size_t i = 0; i < part_.sends.size(); ++i) {
    if (posted_[i] && records_[i].completed.count < 0) return PlanWait{part_.sends[i].id, false};
  }
  std::optional<PlanWait> any;
  for (std::size_t i = 0; i < part_.arrivals.size(); ++i) {
    if (arrived_[i]) continue;
    const PlanWait wait{part_.arrivals[i].id, true};
    if (somebody_waits(wait.message)) return wait;
    if (!any) any = wait;
  }
  return any;
}

}  // namespace paceline::rank

#include "dataplane/transport/transmit_path.h"

#include <algorithm>
#include <array>
#include <bit>

#include "dataplane/transport/message/packet_class.h"
#include "dataplane/transport/message/requester_timer.h"
#include "dataplane/transport/read/read_responder.h"
#include "dataplane/wire/packet/icrc.h"

namespace paceline::transport {

namespace {
// Packets built before the port is called, where the port takes more than one at a time.
constexpr std::size_t kMaxBurst = 32;
constexpr std::size_t kMaxControlBurst = 16;
// How long a context waits when the packet pool is empty.
constexpr Picos kPoolRetry = picos_from_micros(1);
// A port that takes nothing for this long has lost its link or its peer. From then on, packets that
// it refuses are dropped, as on a dead link: the timers of the queue pairs continue, and their
// owners get an error. This is longer than any pause of a working link.
constexpr Picos kMostRefusal = picos_from_micros(100'000);
}  // namespace

// Sends control packets ahead of all data, as many as the port takes now.
void TransmitPath::flush_control() {
  if (core_.acks_waiting) {
    core_.waiting_acks.fill({});
    core_.acks_waiting = false;
  }
  while (core_.control_head != nullptr && core_.port.tx_ready_at(kControlClass) <= core_.now) {
    std::array<Packet*, kMaxControlBurst> burst;
    const std::size_t limit = std::min<std::size_t>(core_.info.tx_burst, burst.size());
    std::size_t count = 0;
    for (Packet* packet = core_.control_head; packet != nullptr && count < limit;
         packet = packet->next) {
      burst[count++] = packet;
    }
    if (!core_.info.computes_icrc) {
      for (std::size_t i = 0; i < count; ++i) {
        burst[i]->icrc = wire::icrc(burst[i]->header_view(), wire::kEthernetBytes);
      }
    }
    Packet* const rest = burst[count - 1]->next;
    const std::size_t taken = core_.port.tx(core_.now, kControlClass, {burst.data(), count});
    core_.control_head = taken == count ? rest : burst[taken];
    if (core_.control_head == nullptr) core_.control_tail = nullptr;
    core_.counters.tx_control_packets += taken;
    if (taken == count && refusing_ == 0) [[likely]]
      continue;
    const bool drop = stands_still(kControlClass, taken != 0);
    if (taken == count) continue;
    if (!drop) break;
    while (core_.control_head != rest) {
      Packet* const packet = core_.control_head;
      core_.control_head = packet->next;
      core_.pool.free(packet);
      ++core_.counters.tx_stalled;
    }
    if (rest == nullptr) core_.control_tail = nullptr;
  }
}

bool TransmitPath::stands_still(unsigned traffic_class, bool took_some) {
  const std::uint32_t bit = 1U << traffic_class;
  if (took_some) {
    refusing_ &= ~bit;
    return false;
  }
  if ((refusing_ & bit) == 0) refused_since_[traffic_class] = core_.awake();
  refusing_ |= bit;
  return core_.awake() - refused_since_[traffic_class] >= kMostRefusal;
}

// Builds the next packet of the context and charges it. nullptr: nothing to send after all.
Packet* TransmitPath::send_one(std::uint32_t index, CongestionContext& context) {
  QueuePair& qp = *core_.qps[context.active_head];
  Packet* packet = core_.pool.alloc();
  if (packet == nullptr) {
    ++core_.counters.no_packet;
    scheduler_.postpone(index, context, kPoolRetry);
    return nullptr;
  }
  const std::uint8_t in_class =
      context.decision.classed != 0 ? scheduler_.class_of_next(context) : context.traffic_class;
  const bool response = scheduler_.sends_response(qp, context);
  if (!(response ? ReadResponder::build(core_, qp, *packet) : requester_.build_next(qp, *packet))) {
    // Memory is not at hand; or the queue pair has failed and left the ring.
    core_.pool.free(packet);
    congestion_.perform();
    if (qp.active) {
      congestion_.settle(qp);
      congestion_.tell_of_work();
      scheduler_.place(index, context);
    }
    return nullptr;
  }
  congestion_.perform();
  if (!response) {
    if (context.decision.classed != 0) [[unlikely]] {
      PacketClass::put(qp, *packet, in_class);
    } else {
      qp.sent_class = context.traffic_class;
    }
  }
  const Scheduler::Sent sent{packet->wire_bytes, !response && !qp.unreliable, response};
  scheduler_.charge(context, sent);
  if (qp.requester.rate_limited && !response) [[unlikely]]
    RequesterTimer::charge_limit(core_, qp, sent.wire_bytes);
  // This was the last answer before a refusal: the queue pair has failed and left the ring.
  if (!qp.active) [[unlikely]]
    return packet;
  scheduler_.pace(context, sent);
  if (scheduler_.has_work(qp)) {
    scheduler_.end_turn(qp, context, sent);
  } else {
    qp.lane_balance = 0;
    scheduler_.deactivate(qp);
    congestion_.report_idle(index);
    if (qp.config.type == QpType::ud) congestion_.retarget(qp);
  }
  return packet;
}

void TransmitPath::offer(unsigned traffic_class, std::span<Packet* const> burst) {
  const std::size_t taken =
      core_.port.tx(core_.now, static_cast<std::uint8_t>(traffic_class), burst);
  if (taken == burst.size() && refusing_ == 0) [[likely]]
    return;
  const bool drop = stands_still(traffic_class, taken != 0);
  for (std::size_t i = taken; i < burst.size(); ++i) {
    if (drop) [[unlikely]] {
      core_.pool.free(burst[i]);
    } else {
      scheduler_.backlog().push_refused(traffic_class, burst[i]);
    }
    ++core_.counters.tx_stalled;
  }
}

// True when nothing of the class is left over.
bool TransmitPath::flush_backlog(unsigned traffic_class) {
  return scheduler_.backlog().flush(traffic_class, [&](Packet* packet) {
    const bool taken =
        core_.port.tx(core_.now, static_cast<std::uint8_t>(traffic_class), {&packet, 1}) != 0;
    if (!stands_still(traffic_class, taken)) return taken;
    core_.pool.free(packet);
    return true;
  });
}

void TransmitPath::send() {
  std::uint32_t mask = scheduler_.ready_classes() | scheduler_.backlog().classes();
  const std::size_t limit = std::min<std::size_t>(core_.info.tx_burst, kMaxBurst);
  while (mask != 0) {
    const auto traffic_class = static_cast<unsigned>(std::bit_width(mask)) - 1;
    const std::uint32_t bit = 1U << traffic_class;
    if (core_.port.tx_ready_at(static_cast<std::uint8_t>(traffic_class)) > core_.now ||
        ((scheduler_.backlog().classes() & bit) != 0 && !flush_backlog(traffic_class))) {
      mask &= ~bit;
      continue;
    }
    std::array<Packet*, kMaxBurst> burst;
    std::size_t count = 0;
    bool sent_apart = false;
    // A packet that must leave in order waits behind the packets built so far: the burst ends here.
    while (count < limit && (scheduler_.ready_classes() & bit) != 0 &&
           !scheduler_.backlog().waits_in_line(traffic_class)) {
      const std::uint32_t index = scheduler_.pop_ready(traffic_class);
      CongestionContext& context = core_.contexts[index];
      context.in_rings = static_cast<std::uint8_t>(context.in_rings & ~bit);
      if (context.place != ContextPlace::ready) continue;  // a stale entry
      if (context.decision.classed != 0) [[unlikely]] {
        if (scheduler_.parked(index, context, traffic_class)) continue;
      } else if (context.traffic_class != traffic_class) [[unlikely]] {
        // The context waited here while its classes changed, or the slot's previous owner did.
        scheduler_.take_own_turn(index, context);
        continue;
      }
      if (scheduler_.wake_due(context)) {
        cc::Event event;
        event.signal = cc::Signal::tick;
        congestion_.deliver(index, event);  // puts it back where it belongs
        continue;
      }
      Packet* packet = send_one(index, context);
      if (packet != nullptr && packet->traffic_class != traffic_class) [[unlikely]] {
        if (count != 0) offer(traffic_class, {burst.data(), count});
        count = 0;
        offer(packet->traffic_class, {&packet, 1});
        sent_apart = true;
        break;
      }
      if (packet != nullptr) burst[count++] = packet;
    }
    if (count == 0 && !sent_apart && !scheduler_.backlog().waits_in_line(traffic_class)) {
      mask &= ~bit;
      continue;
    }
    if (count != 0) offer(traffic_class, {burst.data(), count});
    if (((scheduler_.ready_classes() | scheduler_.backlog().classes()) & bit) == 0) mask &= ~bit;
  }
}

void TransmitPath::discard() {
  for (unsigned c = 0; c < kTrafficClasses; ++c) {
    scheduler_.backlog().flush(c, [&](Packet* packet) {
      core_.pool.free(packet);
      return true;
    });
  }
  while (Packet* packet = core_.control_head) {
    core_.control_head = packet->next;
    core_.pool.free(packet);
  }
}

}  // namespace paceline::transport

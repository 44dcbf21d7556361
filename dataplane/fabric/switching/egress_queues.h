// The queues at the links that leave switches: which class sends next (strict priority, then
// deficit round robin), where a packet is marked or trimmed, and what is counted.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "dataplane/base/numbers/histogram.h"
#include "dataplane/base/units.h"
#include "dataplane/fabric/switching/dwrr.h"
#include "dataplane/fabric/switching/egress.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/wire/statistics.h"
#include "dataplane/port/packet.h"
#include "dataplane/port/packet_pool.h"

namespace paceline::fabric {

class EgressQueues {
 public:
  // All arguments must outlive this. Marked and trimmed packets count in `stats` as well.
  EgressQueues(const FabricSpec& spec, PacketPool& pool, NetworkStats& stats,
               std::pmr::memory_resource& memory);

  // The queues of link `link`, which leaves switch `switch_index` by `port`; their number. All are
  // added before the first packet, so that references stay valid.
  std::uint32_t add(std::uint32_t link, std::uint32_t switch_index, std::uint16_t port,
                    bool last_hop);
  Egress& operator[](std::uint32_t index) { return egresses_[index]; }
  const Egress& operator[](std::uint32_t index) const { return egresses_[index]; }
  std::span<const Egress> all() const { return egresses_; }

  // A packet arrives for this queue of the port: counts the bytes that it finds there. Marks it, if
  // the queue at arrival decides.
  void found_by(Egress& egress, const ClassQueue& queue, Packet* packet) {
    (egress.last_hop ? last_hop_depth_ : core_depth_).record(egress.queued_bytes);
    if (mark_at_enqueue_ && queue.bytes > least_kmin_) mark(egress, packet, queue.bytes);
  }
  // Whether the queue is so long that an arriving packet is trimmed.
  bool above_trim_threshold(const ClassQueue& queue) const { return queue.bytes > trim_above_; }
  // Cuts off the payload and moves the packet to the class of trimmed packets. False: it has no
  // payload, or its class is not a data class.
  bool trim(Egress& egress, Packet* packet);

  // The packet leaves at once, without being queued.
  static void pass(Egress& egress, const Packet& packet) {
    ++egress.packets;
    egress.bytes += packet.wire_bytes;
  }
  static void push(Egress& egress, ClassQueue& queue, Packet* packet, Picos now) {
    egress.integrate(now);
    egress.queued_bytes += packet->wire_bytes;
    if (egress.queued_bytes > egress.max_bytes) egress.max_bytes = egress.queued_bytes;
    queue.push(packet);
  }

  // Strict classes first, the highest of them first; the rest is shared by weight. `eligible`: bit
  // per class that has packets and may send, not 0.
  std::uint8_t choose(std::uint32_t index, unsigned eligible) {
    const unsigned strict = eligible & strict_classes_;
    if (strict != 0) [[likely]]
      return static_cast<std::uint8_t>(std::bit_width(strict) - 1);
    return dwrr_[index].pick(eligible, egresses_[index].queues, quantum_);
  }
  // The first packet of the class leaves at `at`; it is marked if the queue that it leaves decides
  // so.
  Packet* pop(Egress& egress, std::uint8_t traffic_class, Picos at) {
    ClassQueue& queue = egress.queues[traffic_class];
    egress.integrate(at);
    Packet* packet = queue.pop();
    if (queue.head != nullptr) {  // the next packet may have waited for long
      __builtin_prefetch(queue.head);
      __builtin_prefetch(&queue.head->header);
    }
    egress.queued_bytes -= packet->wire_bytes;
    pass(egress, *packet);
    if (queue.bytes > least_kmin_ && !mark_at_enqueue_) mark(egress, packet, queue.bytes);
    return packet;
  }
  // The class has nothing left: it loses the rest of its turn.
  void emptied(std::uint32_t index, std::uint8_t traffic_class) {
    if (!dwrr_.empty()) [[unlikely]]
      dwrr_[index].emptied(traffic_class);
  }
  // Below it the port does not mark.
  std::uint64_t kmin(std::uint32_t index) const { return curves_[egresses_[index].curve].kmin; }
  // From now on, packets that leave the queue are marked by its curve with thresholds times
  // `factor`, or not at all (0).
  void set_marking(std::uint32_t index, double factor);
  // The first packet of the class is lost; nullptr: none is queued. The caller has integrated
  // before.
  static Packet* lose(Egress& egress, std::uint8_t traffic_class);

  EgressStats stats(std::uint32_t index) const;
  const Histogram& last_hop_depth() const { return last_hop_depth_; }
  const Histogram& core_depth() const { return core_depth_; }
  std::uint64_t last_hop_max_bytes() const;

  // Replaces queues by those of `other`; adds what arriving packets found in other queues.
  void take_over(const EgressQueues& other, std::uint32_t index);
  void gather(const EgressQueues& other);

 private:
  struct Curve {
    explicit Curve(const MarkingCurve& of);
    std::uint64_t kmin = 0;
    std::uint64_t kmax = 0;
    double slope = 0;  // pmax / (kmax - kmin)
    friend bool operator==(const Curve&, const Curve&) = default;
  };

  // The curve of a link's port, by its rate.
  std::uint8_t curve_of(std::uint32_t link) const;
  void mark(Egress& egress, Packet* packet, std::uint64_t queue_bytes);

  const FabricSpec& spec_;
  PacketPool& pool_;
  NetworkStats& stats_;
  std::pmr::vector<Egress> egresses_;
  // The least kmin of all curves in use; ~0 if marking is off.
  std::uint64_t least_kmin_ = ~std::uint64_t{0};
  // The first curve is for rates without their own; no_marks_ marks nothing; curves with changed
  // thresholds follow.
  std::vector<Curve> curves_;
  std::uint8_t no_marks_ = 0;
  std::uint64_t trim_above_;  // ~0 where nothing is trimmed
  bool mark_at_enqueue_;
  unsigned strict_classes_ = 0xFF;  // bit per class without a weight
  std::array<std::uint32_t, kTrafficClasses> quantum_{};
  std::vector<Dwrr> dwrr_;  // by egress, where a class has a weight
  Histogram last_hop_depth_;
  Histogram core_depth_;
};

}  // namespace paceline::fabric

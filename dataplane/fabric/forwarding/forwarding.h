// What happens to packets: they are put on links, arrive, are queued in switches and leave them.
// The paths that a packet takes are here; the state that it meets belongs to the classes below
// (wire/ and switching/), which return what they want done.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/event_wheel.h"
#include "dataplane/base/histogram.h"
#include "dataplane/base/random.h"
#include "dataplane/fabric/switching/credits.h"
#include "dataplane/fabric/switching/dwrr.h"
#include "dataplane/fabric/switching/egress.h"
#include "dataplane/fabric/switching/switch.h"
#include "dataplane/fabric/topology/division.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/topology/topology.h"
#include "dataplane/fabric/wire/crossing.h"
#include "dataplane/fabric/wire/host_queues.h"
#include "dataplane/fabric/wire/link.h"
#include "dataplane/fabric/wire/statistics.h"
#include "dataplane/port/capture.h"
#include "dataplane/port/packet.h"
#include "dataplane/port/packet_pool.h"

namespace paceline::fabric {

class Forwarding {
 public:
  // All must outlive this. Directed link l is actor first_actor + l of the wheel.
  Forwarding(const FabricSpec& spec, Topology& topology, PacketPool& pool, EventWheel& wheel,
             std::uint32_t first_actor, std::pmr::memory_resource& memory);

  const FabricSpec& spec() const { return spec_; }
  const Topology& topology() const { return topology_; }
  const EventWheel& wheel() const { return wheel_; }
  std::uint32_t first_actor() const { return first_actor_; }
  PacketPool& pool() { return pool_; }
  std::uint32_t links() const { return static_cast<std::uint32_t>(links_.size()); }
  Link& link(std::uint32_t id) { return links_[id]; }
  const Link& link(std::uint32_t id) const { return links_[id]; }
  std::uint32_t switches() const { return static_cast<std::uint32_t>(switches_.size()); }
  Switch& switch_at(std::uint32_t index) { return switches_[index]; }
  const Switch& switch_at(std::uint32_t index) const { return switches_[index]; }
  const Egress& egress(std::uint32_t index) const { return egresses_[index]; }
  HostQueues& host_queues() { return hosts_; }
  const HostQueues& host_queues() const { return hosts_; }

  void link_fired(std::uint32_t link, Picos now);
  // A host's packet goes on its uplink at `now`, which is not before link.busy.
  void inject(Link& link, Packet* packet, Picos now);
  // The same for who knows where the packet goes: to host `to`, or nobody.
  void inject_to(Link& link, std::uint8_t traffic_class, Packet* packet, std::uint32_t to,
                 Picos now);
  // The first packet in flight on a link arrives. The caller sees to the link's entry in the wheel.
  void arrive_first(std::uint32_t link);
  void advance(Link& link, Picos now);
  void reschedule(Link& link);
  void wait_for_first(const Link& link);
  // While held, links keep out of the wheel, but for what is put on one that is empty.
  void hold_schedule(bool held) { held_ = held; }
  // What follows happens at this time.
  void set_now(Picos now) { now_ = now; }
  Picos now() const { return now_; }

  void finish(Picos now);
  const NetworkStats& stats() const { return stats_; }
  std::optional<EgressStats> egress_stats(std::uint32_t link) const;
  const Histogram& last_hop_depth() const { return last_hop_depth_; }
  const Histogram& core_depth() const { return core_depth_; }
  std::uint64_t last_hop_max_bytes() const;
  Picos link_pause_time(std::uint32_t link) const;
  Picos pause_in_force(const Link& link, Picos now) const;
  std::uint64_t queue_bytes(std::uint32_t link, Picos now);
  void tap(std::uint32_t link, LinkTap& tap);
  void untap(std::uint32_t link);
  void divide(const Division& division, std::uint32_t part);
  void send_to(std::span<std::vector<Crossing>> lists) { away_ = lists; }
  Picos decide_leaving(Picos until);
  Picos first_sent_away();
  void take_in(std::span<const Crossing> packets);
  std::uint64_t foreign_events() const { return foreign_events_; }
  std::uint64_t idle_events() const { return idle_events_; }
  void gather(const Forwarding& other);
  std::string check_conservation() const;

 private:
  // Hot path, network.cc.
  std::uint8_t class_in_switches(const Packet& packet) const;
  void transmit(Link& link, Packet* packet, Picos start);
  void launch(Link& link, Packet* packet, Picos start, Picos late);
  void put_on_wire(Link& link, Packet* packet, Picos start, Picos late = Picos{0});
  std::uint32_t choose_link(std::uint32_t switch_index, NextHop hop, const Packet& packet);
  std::uint8_t choose_class(unsigned eligible, const Egress& egress, std::uint32_t index);
  void depart(Link& link, Egress& egress);
  void arrive(const Link& link, Packet* packet, Picos now);
  void enqueue(Switch& sw, Link& out, const Link& in, Packet* packet, Picos now);
  void mark(Egress& egress, Packet* packet, std::uint64_t queue_bytes);
  bool trim(Egress& egress, Packet* packet);
  static bool exact(const Link& link);

  // Buffer and pauses, network_pfc.cc.
  bool admit(Switch& sw, Egress& egress, Packet* packet, Picos now);
  void consider_pause(Switch& sw, std::uint16_t port, std::uint8_t traffic_class, Picos now);
  void consider_resume(Switch& sw, std::uint16_t port, std::uint8_t traffic_class, Picos now);
  void track_buffer_use(Switch& sw, Picos now);
  void advance_switch(Switch& sw, Picos now);
  void set_exact(const Switch& sw, bool exact);
  static Picos paused_for(const LinkDetail& detail, std::size_t traffic_class, Picos now);
  void send_pause(Switch& sw, std::uint16_t port, std::uint8_t traffic_class, bool pause,
                  Picos now);
  void pause_arrived(const Link& link, Packet* frame, Picos now);
  void arrive_special(const Link& link, Packet* packet, Picos now);
  void refuse(const Egress& egress, Packet* packet, DropReason reason, Picos now);
  void drop(Packet* packet, DropReason reason);

  // Credits, network_credit.cc.
  void pass_credits(Link& link, std::uint8_t traffic_class, std::uint32_t bytes,
                    std::uint16_t ingress, Picos start);
  void stall(Link& link, std::uint8_t traffic_class, Picos since);
  void free_credits(const Switch& sw, std::uint16_t port, std::uint8_t traffic_class,
                    std::uint32_t bytes, Picos now);
  void send_credits(Link& back, std::uint8_t traffic_class, std::uint64_t limit, Picos now);
  void credits_arrived(const Link& link, Packet* update, Picos now);
  void arrive_granted(const Link& link, Packet* packet, Picos now);
  void restart_credits(Link& link, Picos now);
  void check_credits(std::string& wrong) const;

  // Links that somebody looks at, network_tap.cc.
  void arrive_notable(const Link& link, Packet* packet, Picos now);
  void arrive_shown(const Link& link, Packet* packet, Picos now);
  void arrive_tapped(const Link& link, Packet* packet, Picos now);
  void show_drop(const Link& link, const Packet& packet, Fate fate, DropReason reason, Picos now);

  // Links that lose, damage, double and delay packets, network_impair.cc.
  void transmit_impaired(Link& link, Packet* packet, Picos start);
  void record(const Link& link, Packet& packet, Picos start);
  Picos impair(Link& link, Packet* packet, bool& duplicate);
  void insert_in_flight(Link& link, Packet* packet);
  void refresh_impairments(Link& link);

  // Link events, network_events.cc.
  void run_agenda(Picos now);
  void happen(const LinkEvent& event, Picos now);
  void take_down(Link& link, Picos now);
  void bring_up(Link& link, Picos now);
  void lose_in_flight(Link& link, Picos now);
  void lose_queued(Link& link, Picos now);
  void forget_pauses(Link& link, Picos now);

  // Links from and to other parts of the fabric, network_parts.cc.
  bool owns_link(std::uint32_t id) const {
    return division_ == nullptr || division_->part_from(spec_, id) == part_;
  }
  void send_away(const Link& link, const Packet& packet);
  void recall(const Link& link);
  void happen_elsewhere(Link& link, LinkAction action);

  // Construction, network_build.cc.
  void build_choices();
  void build_marking();
  void build_events();
  void build_switches();
  void build_links();

  struct Agenda {
    Picos at{0};
    bool reroute = false;  // the switches learn of it
    LinkEvent event;
  };

  const FabricSpec& spec_;
  Topology& topology_;
  EventWheel& wheel_;
  std::uint32_t first_actor_;
  PacketPool& pool_;
  std::pmr::vector<Link> links_;
  std::pmr::vector<Egress> egresses_;
  std::vector<Switch> switches_;
  HostQueues hosts_;
  std::vector<LinkDetail> details_;  // per directed link
  NetworkStats stats_;
  Picos now_{0};                   // of the link event in progress or last seen
  std::uint64_t late_pauses_ = 0;  // pauses or resumes decided after their time: must stay 0
  // Of all curves in use the least kmin; ~0 where marking is off.
  std::uint64_t ecn_kmin_ = ~std::uint64_t{0};
  struct Curve {
    explicit Curve(const MarkingCurve& of);
    std::uint64_t kmin = 0;
    std::uint64_t kmax = 0;
    double slope = 0;  // pmax / (kmax - kmin)
  };
  std::vector<Curve> curves_;                     // the first is that of rates without their own
  std::uint64_t trim_above_ = ~std::uint64_t{0};  // where nothing is trimmed
  bool mark_at_enqueue_ = false;
  bool moves_answers_ = false;      // to ack_class or cnp_class
  unsigned strict_classes_ = 0xFF;  // bit per class without a weight
  std::array<std::uint32_t, kTrafficClasses> quantum_{};
  std::vector<Dwrr> dwrr_;                 // per egress, where a class has a weight
  std::vector<std::uint32_t> spray_next_;  // LoadBalance::spray: by first link of a group
  std::vector<Agenda> agenda_;             // by time
  std::size_t next_agenda_ = 0;
  std::vector<bool> failed_;  // per link of the spec
  Random control_loss_{0};
  std::vector<LinkTap*> taps_;           // per link of the spec, where there is any
  const Packet* observed_ = nullptr;     // arrives by a tapped link
  const char* observed_drop_ = nullptr;  // why it was dropped there
  std::unique_ptr<CreditBook> credits_;  // where these rule
  const Packet* arriving_ = nullptr;     // by a link with credits; forgotten when it is dropped
  const Division* division_ = nullptr;   // the parts of the fabric, where this is one of several
  std::uint32_t part_ = 0;
  std::vector<std::uint32_t> leaving_;     // links of this part that end in another
  std::span<std::vector<Crossing>> away_;  // by part
  Picos first_away_ = kNever;
  std::uint64_t foreign_events_ = 0;
  std::uint64_t idle_events_ = 0;
  Histogram last_hop_depth_;
  Histogram core_depth_;
  bool held_ = false;  // links keep out of the wheel
};

}  // namespace paceline::fabric

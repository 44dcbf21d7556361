// The emulated fabric: host ports, links, output-queued switches with shared buffer, ECN and PFC.
//
// Departures are lazy: a port decides them only when somebody looks (a packet is enqueued, its
// wire's last packet in flight arrives, a pause or resume takes effect, a reader asks), so that a
// hop costs one event. The result is exactly that of deciding each at its time; docs/performance.md
// argues why and tests/unit/fabric/lazy_departures_test.cc checks it. Ties: departures at T precede
// enqueues at T; links act in the order of their numbers.
//
// One thread. The caller owns the clock: it pops the event wheel and calls link_fired for the
// actors that are links, then polls the hosts in woken_hosts().
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
#include "dataplane/base/slab.h"
#include "dataplane/fabric/topology/division.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/topology/topology.h"
#include "dataplane/fabric/wire/crossing.h"
#include "dataplane/fabric/wire/statistics.h"
#include "dataplane/port/capture.h"
#include "dataplane/port/packet.h"
#include "dataplane/port/packet_pool.h"
#include "dataplane/port/port.h"

namespace paceline::fabric {

class CreditBook;
class HostPort;
struct Link;
struct LinkDetail;
struct Egress;
struct Switch;
struct Dwrr;

class Network {
 public:
  // Directed link l is actor first_actor_id + l of the wheel, the agenda of link events (if there
  // are any) the one behind the last link; the wheel must have room for actors_needed(spec) actors
  // from there and outlive the network. Throws std::invalid_argument
  // when the spec has errors other than unreachable host pairs (check() tells all beforehand).
  // `memory` holds what packets touch, and must outlive the network, too.
  Network(const FabricSpec& spec, EventWheel& wheel, std::uint32_t first_actor_id,
          std::pmr::memory_resource& memory = *std::pmr::new_delete_resource());
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  static std::uint32_t actors_needed(const FabricSpec& spec) {
    return static_cast<std::uint32_t>(2 * spec.links.size() + (spec.events.empty() ? 0 : 1));
  }

  std::uint32_t hosts() const { return spec_.hosts; }
  std::uint32_t links() const { return static_cast<std::uint32_t>(2 * spec_.links.size()); }
  const FabricSpec& spec() const { return spec_; }
  const Topology& topology() const { return topology_; }
  PacketPool& pool() { return pool_; }

  // Lives as long as the network. Calls at time t on a host's port: after all link events before t.
  Port& host_port(std::uint32_t host);

  // Instead of the port's tx, for whoever stands in for a host and knows where packets go: puts one
  // on the host's uplink, to host `to`, or to nobody when there is none of that number. True: it
  // was taken. False: not before send_ready_at(); kNever while the class is paused or the link
  // down.
  bool send(std::uint32_t host, std::uint8_t traffic_class, Packet* packet, std::uint32_t to,
            Picos now);
  Picos send_ready_at(std::uint32_t host, std::uint8_t traffic_class);

  // The wheel popped this actor of the network (0-based, first_actor_id subtracted) at `now`.
  void link_fired(std::uint32_t link, Picos now);

  // Brings near what link_fired(link) will touch; calls for one link some events apart, each
  // reading what the one before has fetched. Changes nothing. The link; its first packet; where
  // that one goes next, a link (prefetch_next) or a host (prefetch_arrival); the queue at that
  // link; who waits in it; what it takes that the first of those leaves before. From the third on,
  // prefetch_departure as well: what leaves after the packet, one more with each call.
  static constexpr std::uint32_t kNowhere = 0xFFFF'FFFF;
  struct Ahead {
    std::uint32_t out = kNowhere;     // where the first packet goes, if that is a link
    const Packet* leaving = nullptr;  // may leave when it arrives
  };
  void prefetch_actor(std::uint32_t actor) const;
  void prefetch_packet(std::uint32_t id) const;
  void prefetch_next(std::uint32_t id, Ahead& ahead) const;
  void prefetch_arrival(std::uint32_t id, Ahead& ahead) const;
  void prefetch_egress(std::uint32_t id, const Ahead& ahead) const;
  void prefetch_joined(std::uint32_t id, const Ahead& ahead) const;
  void prefetch_before(std::uint32_t id, const Ahead& ahead) const;
  void prefetch_departure(std::uint32_t id, Ahead& ahead) const;
  // The port of a host; with the next call its uplink.
  void prefetch_port(std::uint32_t host) const;
  void prefetch_uplink(std::uint32_t host) const;
  // Where a link ends; neither for an actor that is none.
  bool ends_at_a_switch(std::uint32_t actor) const;
  bool ends_at_a_host(std::uint32_t actor) const;
  // Of a link that ends at a host: the host, and the packet that reaches it first; nullptr: none.
  std::uint32_t host_at(std::uint32_t id) const;
  const Packet* first_on(std::uint32_t id) const;

  // --- a window of time, node by node, instead of link_fired (network_sweep.cc) ---
  //
  // For who works off a window [begin, end) no longer than the shortest delay of a link, so that
  // what a node does within it is felt by others after it: each node's events in their order, the
  // nodes in any. Why this fabric cannot be worked off so; empty: it can, once prepared.
  static std::string sweep_obstacle(const FabricSpec& spec);
  void prepare_sweeps();
  // The node at which packets of a directed link arrive in this part: a host, or a switch, which
  // come after the hosts. `link` may be an actor that is none: kNowhere.
  std::uint32_t node_of(std::uint32_t actor) const { return node_of_[actor]; }
  // Of a host: the link that ends there.
  std::uint32_t downlink(std::uint32_t host) const { return downlink_[host]; }
  // A bit for every node; set: a switch with packets queued, which must be visited in each window.
  const std::vector<std::uint64_t>& backlogged_nodes() const { return backlogged_nodes_; }
  void begin_sweep(Picos begin, Picos end);
  // Everything at this switch in the window; returns the time of the last. `due`: the links to it
  // that the wheel had before the window's end.
  Picos sweep_switch(std::uint32_t index, std::span<const std::uint32_t> due);
  // When the next packet arrives by this link; it arrives.
  Picos next_arrival(std::uint32_t link) const;
  void arrive_next(std::uint32_t link);
  // Puts the link back into the wheel, once all of the window has arrived.
  void wait_for_next(std::uint32_t link);
  // After the last node. When the next packet leaves a queue: no event, but no window may begin
  // later.
  Picos end_sweep();
  // The same after events that link_fired worked off, all before `until`.
  Picos settle(Picos until);
  // Brings near what a switch or a host will touch, while `ahead` other nodes come before it; calls
  // with kSweepAhead, and one less each time, follow one another, each reading what the one before
  // has fetched.
  static constexpr unsigned kSweepAhead = 5;
  void prefetch_sweep(std::uint32_t index, std::span<const std::uint32_t> due,
                      unsigned ahead) const;
  void prefetch_arrivals(std::uint32_t host, unsigned ahead) const;
  // Packets that arrived at switches in sweep_switch.
  std::uint64_t swept_events() const { return swept_events_; }

  // Hosts that received a packet, or one of whose classes was resumed, since clear_woken(); each at
  // most once, in the order in which it happened.
  std::span<const std::uint32_t> woken_hosts() const { return woken_; }
  void clear_woken();

  // Brings every port up to `now` and closes time-weighted statistics there. Everything may go on
  // afterwards.
  void finish(Picos now);

  const NetworkStats& stats() const { return stats_; }
  // Directed link l; only links that leave a switch have an egress (else nullopt). Exact at the
  // time of the last finish().
  std::optional<EgressStats> egress_stats(std::uint32_t link) const;
  // Queue length in bytes found by each packet arriving at a switch port towards a host (last hop),
  // and at the other switch ports.
  const Histogram& last_hop_depth() const { return last_hop_depth_; }
  const Histogram& core_depth() const { return core_depth_; }
  // Deepest queue of any port towards a host.
  std::uint64_t last_hop_max_bytes() const;

  // How long a directed link (of a host or a switch) was paused, summed over classes.
  Picos link_pause_time(std::uint32_t link) const;
  // The same, with what the pauses in force have lasted until `now`.
  Picos link_pause_time(std::uint32_t link, Picos now) const;
  // stats().pause_time with what the pauses in force have lasted until `now`, for time series.
  Picos pause_time(Picos now) const;

  // A look at one egress queue at `now`, for time series. Changes no result.
  std::uint64_t queue_bytes(std::uint32_t link, Picos now);

  // Shows `tap` what crosses link `link` of the spec from now on, in both directions, and what was
  // dropped from the queues in front of it. Changes no result. One tap per link, which must outlive
  // the network's use.
  void tap(std::uint32_t link, LinkTap& tap);
  // No more, from now on. Between events.
  void untap(std::uint32_t link);

  // One part of a fabric that several networks work on, each on a thread of its own
  // (docs/architecture.md, "Parallel virtual time"). Every network is built from the whole spec;
  // after divide() this one holds the truth about the switches and hosts of `part` and about the
  // links that leave them. Before the first event; `division` must outlive the network.
  void divide(const Division& division, std::uint32_t part);
  // Where what goes to other parts is put from now on, by part: one list for each.
  void send_to(std::span<std::vector<Crossing>> lists) { away_ = lists; }
  // Decides what leaves for other parts up to `until`, so that all of it is in the lists. Every
  // event up to then has happened. Returns when, as things stand, the next packet leaves for
  // another part: that need not be an event. kNever: none is queued.
  Picos decide_leaving(Picos until);
  // When the first packet arrives that was sent away since the last call; kNever when none was.
  Picos first_sent_away();
  // What came from another part: arrives at its time, which must not be over yet.
  void take_in(std::span<const Crossing> packets);
  // Events of links that enter this part, or of link events, which another part counts as well.
  std::uint64_t foreign_events() const { return foreign_events_; }
  // Calls of link_fired by which nothing arrived: departures that are events because somebody is
  // paused, or the agenda. Which there are depends on when somebody looks.
  std::uint64_t idle_events() const { return idle_events_; }
  // After a run: makes this network the whole, by taking over what `other` holds the truth about.
  // Afterwards neither is used but for reading.
  void gather(const Network& other);

  // Conservation: injected = delivered + dropped + in flight + queued, in packets and bytes; every
  // buffer counter equals what its queues hold; PFC state is consistent. Empty when all holds, else
  // what is wrong. Walks everything: for tests and the end of a run.
  std::string check_conservation() const;

 private:
  friend class HostPort;

  Picos pause_in_force(const Link& link, Picos now) const;

  // Hot path, network.cc.
  void inject(Link& link, Packet* packet, Picos now);
  std::uint8_t class_in_switches(const Packet& packet) const;
  void transmit(Link& link, Packet* packet, Picos start);
  void launch(Link& link, Packet* packet, Picos start, Picos late);
  void put_on_wire(Link& link, Packet* packet, Picos start, Picos late = Picos{0});
  std::uint32_t choose_link(std::uint32_t switch_index, NextHop hop, const Packet& packet);
  std::uint8_t choose_class(unsigned eligible, const Egress& egress, std::uint32_t index);
  void advance(Link& link, Picos now);
  void depart(Link& link, Egress& egress);
  void arrive(const Link& link, Packet* packet, Picos now);
  void enqueue(Switch& sw, Link& out, const Link& in, Packet* packet, Picos now);
  void mark(Egress& egress, Packet* packet, std::uint64_t queue_bytes);
  bool trim(Egress& egress, Packet* packet);
  void wake(HostPort& port);
  static void prefetch_switch(const Switch& sw);
  void prefetch_queue(const Link& link, unsigned traffic_class) const;
  void prefetch_behind(const Link& link, Ahead& ahead) const;
  static bool exact(const Link& link);

  // Buffer and pauses, network_pfc.cc.
  bool admit(Switch& sw, Egress& egress, Packet* packet, Picos now);
  void consider_pause(Switch& sw, std::uint16_t port, std::uint8_t traffic_class, Picos now);
  void consider_resume(Switch& sw, std::uint16_t port, std::uint8_t traffic_class, Picos now);
  void track_buffer_use(Switch& sw, Picos now);
  void advance_switch(Switch& sw, Picos now);
  void set_exact(const Switch& sw, bool exact);
  void reschedule(Link& link);
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

  // Windows node by node, network_sweep.cc.
  void depart_in_time(Switch& sw, Picos before, std::uint32_t before_link);
  Picos advance_backlogged(std::uint32_t index, Picos until);

  struct Agenda {
    Picos at{0};
    bool reroute = false;  // the switches learn of it
    LinkEvent event;
  };

  FabricSpec spec_;
  Topology topology_;
  EventWheel& wheel_;
  std::uint32_t first_actor_;
  PacketPool pool_;
  std::pmr::vector<Link> links_;
  std::pmr::vector<Egress> egresses_;
  std::vector<Switch> switches_;
  Slab<HostPort> ports_;
  std::vector<std::uint32_t> woken_;
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

  bool sweeping_ = false;  // links keep out of the wheel, but for what comes after the window
  Picos sweep_begin_{0};
  Picos sweep_end_{0};
  Picos next_leaving_ = kNever;
  std::uint64_t swept_events_ = 0;
  std::vector<std::uint32_t> node_of_;           // by actor of the network
  std::vector<std::uint32_t> downlink_;          // by host
  std::vector<std::uint64_t> backlogged_nodes_;  // as it was at the end of the last window
  std::vector<std::uint64_t> arrivals_;          // of one switch: time, then link
  std::vector<std::uint32_t> unscheduled_;       // switches with exact departures
};

}  // namespace paceline::fabric

// A part of a virtual world: some switches, their hosts and links, with an event queue, a packet
// pool, counters and memory of their own. A world of one thread is one part that has everything; of
// several threads, each runs one (parallel_run.h).
//
// Actors are numbered alike in all parts, the directed links of the whole fabric and then its
// hosts, so that (time, actor) orders the events of all parts as it does those of one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/base/containers/event_wheel.h"
#include "dataplane/base/containers/slab.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "dataplane/driver/virtual/large_pages.h"
#include "dataplane/driver/virtual/look_ahead.h"
#include "dataplane/driver/virtual/world_host.h"
#include "dataplane/fabric/network.h"

namespace paceline {

class WorldPart {
 public:
  // A finished message, and the event that finished it.
  struct Finished {
    Picos at{0};
    std::uint32_t actor = 0;
    std::uint32_t message = 0;
  };
  // Value of Finished::at before the first event, when every host is polled once.
  static constexpr Picos kBeforeAll{-1};

  // events_per_us: expected, of this part. `plan` and `records` must outlive the part.
  WorldPart(const fabric::FabricSpec& spec, double events_per_us, const MessagePlan& plan,
            const std::vector<MessageRecord>& records);
  // The hosts of the whole world, once they are built; must outlive the part.
  void set_hosts(Slab<WorldHost>& hosts) {
    hosts_ = &hosts;
    ahead_.set_hosts(hosts);
  }

  std::pmr::memory_resource& memory() { return memory_; }
  EventWheel& wheel() { return wheel_; }
  fabric::Network& network() { return network_; }
  const fabric::Network& network() const { return network_; }

  // The first poll of a host, before any event.
  void begin(std::uint32_t host);
  // Why work() came back.
  enum class Pause : std::uint8_t { finished, budget, time };
  // Works off the events before `end`, in order: until `messages` are finished, or `budget` events
  // are done (and taken from it), or none is left.
  Pause work(Picos end, std::uint64_t messages, std::uint64_t& budget);
  // The same where hosts probe; begin_probing() first, after begin() of all.
  void begin_probing();
  Pause work_probing(Picos end, std::uint64_t messages, std::uint64_t& budget);

  // From now on windows of time can be worked off node by node; the fabric must
  // allow it (FabricSweep::obstacle).
  void prepare_sweeps();
  bool sweeps() const { return !nodes_.empty(); }
  // The same events as work() in a window [begin, end) no longer than the shortest delay of a link,
  // before which everything has happened: each node's in their order, node after node. Returns the
  // time of the next departure, before which no window may begin.
  Picos sweep(Picos begin, Picos end);

  // --- in real time (real_time_run.h), instead of work() ---
  struct DueHost {
    std::uint32_t host = 0;
    Picos at{0};  // since when it has had something to do
  };
  // Everything in the fabric before `end` happens, each thing at its own time. Hosts that have
  // something to do are noted, and not polled.
  void catch_up(Picos end);
  // In the order in which they were noted; each once.
  const std::vector<DueHost>& due_hosts() const { return due_hosts_; }
  // Polls a host that was noted, at `now`, for which the fabric is caught up.
  void poll_due_host(std::uint32_t host, Picos now);
  void clear_due_hosts();

  // A host has something to do at `time`, whatever it had before.
  void schedule_host(std::uint32_t host, Picos time) {
    wheel_.schedule(first_host_actor_ + host, time);
  }

  // A message over NVLink arrives at `at`, which is to come, at a host of this part.
  void will_arrive(Picos at, std::uint32_t message);

  Picos now() const { return now_; }  // of the last event
  // Arrivals of packets, and times at which a host was due, of what this part holds the truth
  // about: their sum is that of the undivided world.
  std::uint64_t events() const {
    return events_ + network_.sweep().events() - network_.idle_events() - network_.foreign_events();
  }
  // Whether an event of this actor happens in every part: the agenda of link events.
  bool shared_actor(std::uint32_t actor) const {
    return actor == network_.links() && actor < first_host_actor_;
  }
  bool in_shared_event() const { return events_ != 0 && shared_actor(actor_); }
  const std::vector<Finished>& finished() const { return finished_; }
  std::uint64_t failed() const { return failed_; }
  std::uint64_t bytes_done() const { return bytes_done_; }

 private:
  // A node's turn in a window; where in due_links_ its links are.
  struct Visit {
    std::uint32_t node = 0;  // hosts, then switches
    std::uint32_t links_begin = 0;
    std::uint32_t links_end = 0;
  };

  std::uint32_t host_with(std::uint32_t endpoint) const {
    return endpoint < host_count_ ? endpoint : endpoint % host_count_;
  }
  template <bool kSeveralPorts>
  void act(Picos time, std::uint32_t actor);
  template <bool kSeveralPorts>
  Pause work_in(Picos end, std::uint64_t messages, std::uint64_t& budget);
  void collect(Picos end);
  void prefetch_visits(std::size_t current) const;
  void prefetch_host(std::uint32_t host, unsigned ahead) const;
  std::span<const std::uint32_t> links_of(const Visit& visit) const {
    return {due_links_.data() + visit.links_begin, visit.links_end - visit.links_begin};
  }
  void sweep_host(std::uint32_t host, Picos end);
  Picos poll_group(std::uint32_t index, Picos now);
  void poll_host(std::uint32_t index, Picos now);
  void poll_probing(std::uint32_t host, Picos now);
  void take_finished(WorldHost& host);
  void note_due(std::uint32_t host, Picos at);

  LargePages large_pages_;  // outlives what it holds
  std::pmr::memory_resource& memory_;
  const MessagePlan& plan_;
  const std::vector<MessageRecord>& records_;
  Slab<WorldHost>* hosts_ = nullptr;
  std::uint32_t first_host_actor_;
  EventWheel wheel_;
  fabric::Network network_;
  Picos now_{0};
  std::uint64_t events_ = 0;
  std::uint32_t actor_ = 0;         // whose event it was; before the first, a host
  std::vector<Finished> finished_;  // in the order in which it happened
  std::uint64_t failed_ = 0;
  std::uint64_t bytes_done_ = 0;
  std::vector<DueHost> due_hosts_;
  std::vector<bool> is_due_;  // by host, once there was one
  std::uint32_t host_count_;  // the fabric knows each by as many endpoints as it has ports
  bool prefetching_ = false;
  LookAhead ahead_;
  // Windows node by node: a bit by node with something to do, and their visits in the order of
  // their numbers; links that are due, as they come and by node; when hosts that left the wheel
  // are.
  std::vector<std::uint64_t> nodes_;
  std::vector<Visit> visits_;
  std::vector<std::uint32_t> taken_;
  std::vector<std::uint32_t> due_links_of_;
  std::vector<std::uint32_t> due_links_;
  std::vector<Picos> due_at_;
};

}  // namespace paceline

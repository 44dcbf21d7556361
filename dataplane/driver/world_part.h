// A part of a virtual world: some switches, their hosts and links, with an event queue, a packet
// pool, counters and memory of their own. A world of one thread is one part that has everything; of
// several threads, each runs one (parallel_run.h).
//
// Actors are numbered alike in all parts, the directed links of the whole fabric and then its
// hosts, so that (time, actor) orders the events of all parts as it does those of one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/base/event_wheel.h"
#include "dataplane/base/slab.h"
#include "dataplane/driver/large_pages.h"
#include "dataplane/driver/look_ahead.h"
#include "dataplane/driver/message_plan.h"
#include "dataplane/driver/world_host.h"
#include "dataplane/fabric/network.h"

namespace paceline {

class WorldPart {
 public:
  // What is done: the event that did it, and the message.
  struct Finished {
    Picos at{0};
    std::uint32_t actor = 0;
    std::uint32_t message = 0;
  };
  // Of Finished::at: before the first event, when every host is polled once.
  static constexpr Picos kBeforeAll{-1};

  // events_per_us: expected, of this part. `plan` and `records` must outlive the part.
  WorldPart(const fabric::FabricSpec& spec, double events_per_us, const MessagePlan& plan,
            const std::vector<MessageRecord>& records);
  // The hosts of the whole world, once they are built; must outlive the part.
  void set_hosts(Slab<WorldHost>& hosts, bool sharded) {
    hosts_ = &hosts;
    sharded_ = sharded;
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

  Picos now() const { return now_; }  // of the last event
  // Events of what this part holds the truth about: their sum is that of the undivided world.
  std::uint64_t events() const { return events_ - network_.foreign_events(); }
  // Whether an event of this actor happens in every part: the agenda of link events.
  bool shared_actor(std::uint32_t actor) const {
    return actor == network_.links() && actor < first_host_actor_;
  }
  bool in_shared_event() const { return events_ != 0 && shared_actor(actor_); }
  const std::vector<Finished>& finished() const { return finished_; }
  std::uint64_t failed() const { return failed_; }
  std::uint64_t bytes_done() const { return bytes_done_; }

 private:
  void act(Picos time, std::uint32_t actor);
  void poll_host(std::uint32_t index, Picos now);
  [[gnu::noinline]] void poll_shards(std::uint32_t index, Picos now);
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
  bool prefetching_ = false;
  bool sharded_ = false;  // hosts have several engines
  LookAhead ahead_;
};

}  // namespace paceline

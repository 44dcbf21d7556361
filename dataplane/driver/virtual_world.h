// A whole fabric with its hosts in virtual time: one event queue, one thread, deterministic from
// the seed. Actors are the directed links (numbers from 0) and the hosts after them; ties go by
// number. A host is a scheduling group: its application and its engine are polled in that order
// until neither is due.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/event_wheel.h"
#include "dataplane/base/slab.h"
#include "dataplane/config/scenario.h"
#include "dataplane/driver/large_pages.h"
#include "dataplane/driver/message_app.h"
#include "dataplane/driver/message_plan.h"
#include "dataplane/driver/pattern_memory.h"
#include "dataplane/driver/scenario_setup.h"
#include "dataplane/fabric/network.h"
#include "dataplane/transport/engine.h"

namespace paceline {

// Shows a link of the fabric to somebody who captures it.
struct LinkTapping {
  std::uint32_t link = 0;  // of the fabric's spec
  LinkTap* tap = nullptr;  // must outlive the run
};

struct WorldOptions {
  bool check_invariants =
      false;  // algorithms' own invariants at every poll; conservation at the end
  bool exact_departures = false;            // fabric: see FabricSpec
  const std::atomic<bool>* stop = nullptr;  // set from outside (Ctrl-C): the run ends, unfinished
  // Called now and then with the share of the work done, 0..1. Must not touch the world.
  std::function<void(double)> progress;
  // Time series: called every `sample_interval` of virtual time with the world. Changes no result.
  Picos sample_interval = kNever;
  std::function<void(const class VirtualWorld&, Picos)> sample;
  // With any, packets carry real bytes and ICRCs. Changes no result.
  std::vector<LinkTapping> taps;
};

enum class RunEnd : std::uint8_t {
  completed,  // every message was acknowledged
  duration,   // the scenario's stated duration was over
  stalled,    // nothing left to happen, messages outstanding: an error
  hop_limit,  // max_hops
  stopped,    // from outside
  violation,  // an invariant broke
};
const char* to_string(RunEnd end);

class VirtualWorld final : public Connector {
 public:
  // Throws std::invalid_argument with the reasons when plan_world reports an error. The plan's
  // messages must name hosts of the scenario.
  VirtualWorld(const config::Scenario& scenario, MessagePlan plan, WorldOptions options = {});
  ~VirtualWorld() override;

  RunEnd run();

  // For the applications inside.
  std::uint32_t connect(Picos now, std::uint32_t src, std::uint32_t dst,
                        std::uint8_t traffic_class) override;

  Picos now() const { return now_; }
  const MessagePlan& plan() const { return plan_; }
  const std::vector<MessageRecord>& records() const { return records_; }
  const fabric::Network& network() const { return *network_; }
  fabric::Network& network() { return *network_; }
  std::uint32_t hosts() const { return scenario_.fabric.hosts; }
  const transport::Engine& engine(std::uint32_t host) const;
  std::uint64_t events() const { return events_; }
  std::uint64_t messages_completed() const { return completed_; }
  std::uint64_t messages_failed() const { return failed_; }
  // Depends on every completion and its time, and on the final counters: equal on every build.
  std::uint64_t trace_hash() const;
  // What broke, for RunEnd::violation and for stalled runs.
  const std::string& problem() const { return problem_; }

 private:
  struct Host;
  struct Ahead {
    std::uint32_t actor = 0;
    std::uint32_t next = 0;  // link: the one that its first packet goes to
    Picos until{0};          // its event is over by then, whatever became of it
  };

  void look_ahead(Picos now);
  void fetch(unsigned stage, Ahead& ahead) const;
  void poll_host(std::uint32_t index, Picos now);
  void take_finished(Host& host);
  bool check_all();

  config::Scenario scenario_;
  MessagePlan plan_;
  WorldOptions options_;
  WorldPlan setup_;
  LargePages large_pages_;  // outlives what it holds
  std::unique_ptr<PlanIndex> index_;
  PatternMemory memory_;
  std::unique_ptr<EventWheel> wheel_;
  std::unique_ptr<fabric::Network> network_;
  std::unique_ptr<Slab<Host>> hosts_;
  std::vector<MessageRecord> records_;
  std::uint32_t first_host_actor_ = 0;
  Picos now_{0};
  std::uint64_t events_ = 0;
  std::uint64_t finished_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t bytes_total_ = 0;
  std::uint64_t bytes_done_ = 0;
  std::uint64_t hash_ = 0;
  std::uint32_t connections_ = 0;
  // Actors seen ahead in the event wheel, a ring; positions modulo 2^32.
  std::array<Ahead, 256> ahead_{};
  std::uint32_t scouted_ = 0;
  std::uint32_t passed_ = 0;
  std::array<std::uint32_t, 4> next_of_stage_{};  // of look_ahead
  bool prefetching_ = false;
  std::string problem_;
};

}  // namespace paceline

// A whole fabric with its hosts in virtual time, deterministic from the seed, on one thread or on
// several with the same result; or, the very same, under a clock (real_time_run.h). Actors are the
// directed links (numbers from 0) and the hosts after them; ties go by number. A host is a
// scheduling group: its application and its engine are polled in that order until neither is due.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataplane/base/containers/slab.h"
#include "dataplane/config/scenario.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "dataplane/driver/traffic/message_app.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "dataplane/driver/traffic/nvlink.h"
#include "dataplane/driver/traffic/pattern_memory.h"
#include "dataplane/driver/virtual/parallel_run.h"
#include "dataplane/driver/virtual/real_time.h"
#include "dataplane/driver/virtual/world_connections.h"
#include "dataplane/driver/virtual/world_part.h"
#include "dataplane/fabric/network.h"
#include "dataplane/fabric/topology/division.h"
#include "dataplane/port/bonded_port.h"
#include "dataplane/probing/probe_end.h"
#include "dataplane/transport/engine.h"

namespace paceline {

// Shows a link of the fabric to a capture.
struct LinkTapping {
  std::uint32_t link = 0;  // of the fabric's spec
  LinkTap* tap = nullptr;  // must outlive the run
};

inline constexpr std::uint32_t kMaxThreads = 64;

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
  // Called when the run restarts, because it ended otherwise than could be foreseen: samples so far
  // are void. Without it, a world that is sampled is processed event by event.
  std::function<void()> restart;
  // Called every `control_interval` of virtual time, before anything else happens then; may change
  // the world (VirtualWorld::reconfigure), so that it decides what comes out. One thread.
  Picos control_interval = kNever;
  std::function<void(class VirtualWorld&, Picos)> control;
  // With any, packets carry real bytes and ICRCs. Changes no result.
  std::vector<LinkTapping> taps;
  // 1..kMaxThreads to share the work, if it can be shared (one_thread_because()). Changes no
  // result.
  std::uint32_t threads = 1;
  // Windows of time are worked off node by node where nothing stands against it: faster, the larger
  // the world. Changes no result.
  bool sweep = true;
  // With a clock: the world runs in real time, on one thread. This changes results, by how late the
  // machine is.
  RealTimeOptions real_time;
};

enum class RunEnd : std::uint8_t {
  completed,  // every message was acknowledged
  duration,   // the scenario's stated duration was over
  stalled,    // no event left, messages outstanding: an error
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

  // Another congestion control, or other values, for all hosts or for those that are named, in
  // force at this very time. For WorldOptions::control, while it is called. Throws
  // std::invalid_argument when a host refuses it, or does not exist; then no host has changed.
  void reconfigure(const transport::CcSetup& setup, std::uint8_t arm, std::uint8_t epoch);
  void reconfigure(const transport::CcSetup& setup, std::uint8_t arm, std::uint8_t epoch,
                   std::span<const std::uint32_t> hosts);
  // Two setups at a time, by the host that data goes to: `arms` has 0 or 1 of each host, or
  // telemetry::kNoCluster for one that is in no cluster. The same contract.
  void reconfigure_by_receiver(const std::array<transport::CcSetup, 2>& setups,
                               std::span<const std::uint8_t> arms, std::uint8_t epoch);
  // As a [cc] table says it, resolved for the ports of this fabric. Throws std::invalid_argument
  // with what is wrong.
  transport::CcSetup cc_setup(const config::CcConfig& cc) const;

  // For the applications inside.
  std::uint32_t connect(Picos now, const PlannedMessage& message) override;
  Picos carry(Picos now, std::uint32_t message) override;

  const config::Scenario& scenario() const { return scenario_; }
  Picos now() const { return now_; }
  const MessagePlan& plan() const { return plan_; }
  const std::vector<MessageRecord>& records() const { return records_; }
  // The network of the whole fabric, unless several threads run.
  const fabric::Network& network() const { return parts_.front()->network(); }
  fabric::Network& network() { return parts_.front()->network(); }
  std::uint32_t hosts() const { return scenario_.fabric.hosts; }
  const transport::Engine& engine(std::uint32_t host) const;
  const MessageApp& app(std::uint32_t host) const;
  // nullptr: there is no probing.
  const probing::ProbeEnd* probe(std::uint32_t host) const;
  const NvLink& nvlink() const { return nvlink_; }
  std::uint64_t events() const;  // one per event however many parts it touched
  std::uint64_t messages_completed() const;
  std::uint64_t messages_failed() const;
  // How many threads there are, and why there are not as many as were asked for; empty: there are.
  std::uint32_t threads() const { return division_.parts; }
  const std::string& one_thread_because() const { return one_thread_because_; }
  // Figures of the threads, after run(). They are not results.
  const ParallelUse& thread_use() const { return use_; }
  // How well time was kept; of a run in virtual time, empty.
  const RealTimeReport& real_time() const { return real_time_; }
  // Depends on every completion and its time, and on the final counters: equal on every build.
  std::uint64_t trace_hash() const;
  // The error of RunEnd::violation and of stalled runs.
  const std::string& problem() const { return problem_; }

 private:
  void build(std::uint32_t threads);
  Port& port_of(std::uint32_t host, fabric::Network& network);
  RunEnd run_alone();
  bool run_in_parallel(RunEnd& end);
  RunEnd run_in_real_time();
  void prepare_real_time();
  void refuse_odd_options() const;
  std::string obstacle() const;
  std::string order_matters() const;
  bool may_sweep() const;
  const std::vector<WorldPart::Finished>& finished() const;
  bool check_all();

  config::Scenario scenario_;
  MessagePlan plan_;
  WorldOptions options_;
  WorldPlan setup_;
  std::unique_ptr<PlanIndex> index_;
  PatternMemory memory_;
  transport::ParamStore params_;  // of all engines
  fabric::Division division_;
  std::vector<std::unique_ptr<WorldPart>> parts_;
  std::deque<BondedPort> bonds_;  // of hosts with several ports, in their order
  std::unique_ptr<Slab<WorldHost>> hosts_;
  std::unique_ptr<WorldConnections> connections_;
  std::unique_ptr<ParallelRun> parallel_;  // while it runs
  ParallelUse use_;
  RealTimeReport real_time_;
  NvLink nvlink_;
  std::vector<MessageRecord> records_;
  std::vector<WorldPart::Finished> finished_;  // of all parts, in order, after a run of several
  Picos now_{0};
  bool controlling_ = false;  // WorldOptions::control is being called
  std::uint64_t bytes_total_ = 0;
  std::string one_thread_because_;
  bool sweeping_ = false;
  std::string problem_;
};

}  // namespace paceline

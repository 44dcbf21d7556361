// A worker: the thread that owns one set of NIC instances, and all of its engines. A turn serves
// rung doorbells and tasks of the control thread, runs what is due in the set, and hands over
// completions. In a turn nothing blocks and, except for control operations, nothing allocates.
//
// Without work it keeps polling for a while, then yields to others, then sleeps until a program,
// the control thread or a memory copy wakes it, or something is due. It announces its sleeps
// (driver/loop/run_loop.h) in the page that all sessions see.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/attach/descriptors/descriptor.h"
#include "dataplane/attach/doorbell.h"
#include "dataplane/attach/shared_memory.h"
#include "dataplane/driver/clock/tsc_clock.h"
#include "dataplane/driver/loop/run_loop.h"
#include "dataplane/probing/probe_end.h"
#include "dataplane/service/adapters/management_pair.h"
#include "dataplane/service/adapters/worker_session.h"
#include "dataplane/service/limits/service_settings.h"
#include "dataplane/service/nics/nic_set.h"
#include "dataplane/service/workers/task_queue.h"
#include "dataplane/service/workers/telemetry_publisher.h"

namespace paceline::service {

class ServiceWorker {
 public:
  ServiceWorker(std::string name, std::unique_ptr<NicSet> nics, const WorkerTimes& times);
  // Ends the thread.
  ~ServiceWorker();
  ServiceWorker(const ServiceWorker&) = delete;
  ServiceWorker& operator=(const ServiceWorker&) = delete;

  // False with errno: there are no descriptors left. Call it once, before anything else.
  bool open();
  // Before start(): where it writes its counters, and which NIC of the segment its first one is.
  void publish_to(const telemetry::SegmentWriter& writer, std::size_t first_nic) {
    publisher_.open(writer, first_nic);
  }
  void start();
  void stop();

  // --- the control thread ---
  const std::string& name() const { return name_; }
  NicSet& nics() { return *nics_; }
  const NicSet& nics() const { return *nics_; }
  // Runs work(now) on the worker's thread between two turns; the next turn looks at `nic`. False if
  // the worker does not run. Throws what `work` throws.
  template <class Work>
  bool call(std::size_t nic, Work&& work) {
    auto task = [&](Picos now) {
      work(now);
      nics_->touch(nic);
      work_pending_ = true;
    };
    return tasks_.run(task, [this] { wake(); });
  }
  // Adds a session's descriptor that wakes the worker when it is written to. The worker never reads
  // or writes it, so a program may do what it likes with it.
  bool watch(int eventfd);
  void unwatch(int eventfd);
  int page_descriptor() const { return page_.descriptor(); }
  WorkerFigures figures() const;

  // --- any thread ---
  // Something has come that a turn looks at.
  void wake();
  // The ports of an instance that have a link, as NicInfo::up, as its programs were told last.
  std::uint8_t ports_up(std::size_t nic) const { return up_[nic].load(std::memory_order_acquire); }

  // --- its own thread, between turns ---
  void add(WorkerSession& session);
  void remove(WorkerSession& session);
  PairTable& pairs(std::size_t nic) { return pairs_[nic]; }
  // Gives each of its NIC instances queue pair 1. Constant addresses from then on.
  void open_management(Picos now, std::uint32_t pd, const ManagementPair::Bell& bell);
  // By NIC; empty before that.
  std::span<const std::unique_ptr<ManagementPair>> management() const { return management_; }
  // The ends by which its NIC instances probe and are probed: one each, or none. Valid until
  // replaced, at the end by an empty list.
  void use_probes(std::vector<std::unique_ptr<probing::ProbeEnd>> ends) {
    probes_ = std::move(ends);
  }
  std::span<const std::unique_ptr<probing::ProbeEnd>> probes() const { return probes_; }
  // Other congestion control for one of its NICs, with effect from the turn that follows; messages
  // posted from then on are of the epoch.
  void reconfigure(Picos now, std::size_t nic, const transport::CcSetup& setup,
                   const NicInForce& in_force);
  // The same with two arms, by the destination's cluster; `in_force` describes the clusters.
  void reconfigure(Picos now, std::size_t nic, const transport::ArmsByPeer& arms,
                   const NicInForce& in_force);
  // Changes the guard's number in what is in force, without another setup.
  void note_guard(std::size_t nic, std::uint32_t guard) { publisher_.note_guard(nic, guard); }

  // Constant address; its figures are of the worker's thread.
  telemetry::NicMeter& meter(std::size_t nic) { return meters_[nic]; }

  // One turn; true if there was something to do. `gap`: for how long, up to now, no thread could
  // run. For tests that have a clock of their own; otherwise start() calls it.
  bool turn(Picos now, Picos gap);

 private:
  struct Body;
  void run();
  void sleep(Picos time);
  bool probe(Picos now);
  void report_events();
  void report_links();
  void begin_in_force(std::size_t nic, const NicInForce& in_force);
  Picos next_deadline(Picos now) const;
  attach::WorkerPage& page() { return *reinterpret_cast<attach::WorkerPage*>(page_.data()); }
  // Only this thread writes: no read-modify-write is needed.
  static void count(std::atomic<std::uint64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void add_busy(Picos time) {
    busy_picos_.store(
        busy_picos_.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(time.count),
        std::memory_order_relaxed);
  }

  std::string name_;
  std::unique_ptr<NicSet> nics_;
  attach::SharedMemory page_;
  attach::Descriptor epoll_;
  attach::Descriptor bell_;  // its own eventfd
  TaskQueue tasks_;
  std::vector<WorkerSession*> sessions_;
  std::size_t first_session_ = 0;
  std::vector<PairTable> pairs_;                             // by NIC
  std::vector<std::unique_ptr<ManagementPair>> management_;  // by NIC, or none
  std::vector<std::unique_ptr<probing::ProbeEnd>> probes_;   // likewise
  std::vector<std::atomic<std::uint8_t>> up_;                // by NIC, as NicInfo::up
  std::uint64_t link_changes_ = 0;                           // those that up_ has
  std::vector<telemetry::NicMeter> meters_;
  TelemetryPublisher publisher_;
  bool work_pending_ = false;  // a command was run since the last turn
  RunLoop loop_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> turns_{0};
  std::atomic<std::uint64_t> busy_turns_{0};
  std::atomic<std::uint64_t> sleeps_{0};
  std::atomic<std::uint64_t> busy_picos_{0};
  std::atomic<double> ticks_per_pico_{0};  // of the clock, once it is calibrated
  std::thread thread_;
};

}  // namespace paceline::service

// Opens what a testbed file (config/testbed/testbed.h) describes: DPDK's environment, a packet
// memory for each queue, on the node of its device, devices, ports, and in front of a port that is
// a host the port that knows neighbours. Makes the workers; engines and applications are the
// caller's, who gives them to the workers and each worker a thread. Once in a process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/config/testbed/testbed.h"
#include "dataplane/driver/loop/worker.h"
#include "dataplane/neighbour/resolving_port.h"
#include "dataplane/port/dpdk/dpdk_port.h"

namespace paceline {

struct TestbedPort {
  std::string name;
  // In the order of making; ports[i] is queue i of the device.
  std::vector<std::unique_ptr<DpdkMemory>> memories;
  std::unique_ptr<DpdkDevice> device;
  std::vector<std::unique_ptr<DpdkPort>> ports;
  // In front of ports[0], where the file has a [port.host].
  std::unique_ptr<neighbour::ResolvingPort> resolver;

  // What an engine is made on.
  Port& front(std::uint32_t queue) {
    if (resolver != nullptr) return *resolver;
    return *ports[queue];
  }

  TestbedPort() = default;
  TestbedPort(TestbedPort&&) = default;
  TestbedPort& operator=(TestbedPort&&) = delete;
  ~TestbedPort();
};

// A [[worker]] of the file. Engines go to it by serve(); then run() on a thread of its own.
class TestbedWorker {
 public:
  struct Queue {
    TestbedPort* port;
    std::uint32_t queue;
  };
  TestbedWorker(const config::WorkerConfig& config, std::vector<Queue> queues);

  const std::string& name() const { return worker_->settings().name; }
  const std::vector<Queue>& queues() const { return queues_; }
  std::optional<std::uint32_t> cpu() const { return cpu_; }
  const Worker& worker() const { return *worker_; }
  // `engine` was made on queues()[index].
  void serve(std::size_t index, transport::Engine& engine, WorkerApp* app);
  // On its thread: pins it, makes it known to DPDK, turns until `stop`. Empty, or why it did not
  // begin.
  std::string run(const TscClock& clock, const std::atomic<bool>& stop);
  // From one other thread, now and then, with the same clock's time: a line for the log when it has
  // stalled since the last call, or stands still; else empty.
  std::string stalls(Picos now);

 private:
  std::unique_ptr<Worker> worker_;
  WatchCounters seen_;
  std::vector<Queue> queues_;
  std::optional<std::uint32_t> cpu_;
};

class DpdkTestbed;

struct DpdkTestbedOpened {
  std::unique_ptr<DpdkTestbed> testbed;  // null: see error
  std::string error;                     // begins with the place in the file, where there is one
};

class DpdkTestbed {
 public:
  static DpdkTestbedOpened open(const config::Testbed& config);

  Eal& eal() { return *eal_; }
  std::vector<TestbedPort>& ports() { return ports_; }
  std::vector<TestbedWorker>& workers() { return workers_; }
  // nullptr when no port is called that.
  TestbedPort* find(const std::string& name);
  // What was opened, and what is missing and how it is made up for: a line each, for a log.
  std::vector<std::string> report() const;

 private:
  DpdkTestbed() = default;

  std::unique_ptr<Eal> eal_;
  std::vector<TestbedPort> ports_;
  std::vector<TestbedWorker> workers_;
};

}  // namespace paceline

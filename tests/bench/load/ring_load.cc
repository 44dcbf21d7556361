// Both ends of a measured conversation in one process: two engines, a thread each, on a cable of
// two net_ring devices. WRITEs go one way; prints one line of JSON. What is sent from registered
// memory is copied once, by the receiver; with --copy into the packet before, as well.
//
// exit: 0 measured, 1 something went wrong under way, 2 could not start (standard error says why)
#include <array>
#include <atomic>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "dataplane/config/command_line.h"
#include "dataplane/driver/clock/tsc_clock.h"
#include "dataplane/port/dpdk/dpdk_port.h"
#include "tests/bench/load/load_side.h"
#include "tests/bench/load/own_processor.h"
#include "tests/support/dpdk_ring_cable.h"

namespace paceline::bench {
namespace {

struct RingOptions {
  LoadConfig load;
  double seconds = 1;
  double warm_up = 0.2;
  std::array<int, 2> cpus = {-1, -1};
  int fifo = 0;
  bool copy = false;
};

constexpr std::uint32_t kPackets = 1024;  // of both ports
constexpr unsigned kSlots = 256;

int refuse(const std::string& why) {
  std::fprintf(stderr, "ring_load: %s\n", why.c_str());
  return 2;
}

int run(const RingOptions& options) {
  const EalStart start = Eal::start({});
  if (start.eal == nullptr) return refuse(start.error);
  DpdkMemorySettings memory_settings;
  memory_settings.packets = kPackets;
  const DpdkMemoryMade memory = DpdkMemory::make(memory_settings);
  if (memory.memory == nullptr) return refuse(memory.error);
  DpdkRingCableMade cable = DpdkRingCable::make("load", kSlots);
  if (cable.cable == nullptr) return refuse(cable.error);
  std::array<std::unique_ptr<DpdkDevice>, 2> devices;
  std::array<std::unique_ptr<DpdkPort>, 2> ports;
  DpdkMemory* const queue = memory.memory.get();
  for (unsigned i = 0; i < 2; ++i) {
    DpdkDeviceSettings device;
    device.device = cable.cable->device(i);
    device.lend_payload = !options.copy;
    DpdkDeviceOpened opened = DpdkDevice::open(*start.eal, device, {&queue, 1});
    if (opened.device == nullptr) return refuse(opened.error);
    devices[i] = std::move(opened.device);
    DpdkPortSettings port;
    port.link_rate = rate_from_gbps(1000);
    port.engine_packets = kPackets / 2;
    DpdkPortMade made = DpdkPort::make(*devices[i], port);
    if (made.port == nullptr) return refuse(made.error);
    ports[i] = std::move(made.port);
  }
  std::array<std::unique_ptr<LoadSide>, 2> sides;
  for (unsigned i = 0; i < 2; ++i) {
    LoadConfig load = options.load;
    load.index = i;
    sides[i] = std::make_unique<LoadSide>(load, *ports[i]);
    if (!sides[i]->connect()) return refuse("the queue pairs do not connect");
  }
  const TscClock clock = TscClock::calibrated();
  std::atomic<bool> stop{false};
  std::array<std::thread, 2> threads;
  for (unsigned i = 0; i < 2; ++i) {
    threads[i] = std::thread([&, i] {
      const LcoreRegistration known;
      settle(options.cpus[i], options.fifo);
      WorkerSettings settings;
      settings.name = "load";
      settings.idle.how = Idle::spin;
      Worker loop(settings);
      loop.add({&sides[i]->engine(), ports[i].get(), sides[i].get()});
      loop.run(clock, stop);
    });
  }
  while (!sides[1]->finished().load(std::memory_order_acquire) &&
         sides[0]->result().problem.empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  stop.store(true, std::memory_order_release);
  for (std::thread& thread : threads) thread.join();

  const LoadResult& r = sides[1]->result();
  const double seconds = static_cast<double>(r.elapsed.count) * 1e-12;
  const std::string problem = r.problem.empty() ? sides[0]->result().problem : r.problem;
  nlohmann::json out;
  if (!problem.empty()) out["problem"] = problem;
  out["bytes_per_s"] = seconds > 0 ? static_cast<double>(r.bytes) / seconds : 0;
  out["retransmitted"] = r.retransmitted;
  out["tx_full"] = ports[1]->counters().tx_full;
  out["tx_lent"] = ports[1]->counters().tx_lent;
  out["tx_lent_copied"] = ports[1]->counters().tx_lent_copied;
  out["tx_recalled"] = ports[1]->counters().tx_recalled;
  out["rx_lent"] = ports[0]->counters().rx_lent;
  std::printf("%s\n", out.dump().c_str());
  for (auto& side : sides) side.reset();
  for (auto& port : ports) port.reset();
  for (auto& device : devices) device.reset();
  cable.cable.reset();
  return problem.empty() ? 0 : 1;
}

}  // namespace
}  // namespace paceline::bench

int main(int count, char** arguments) {
  using namespace paceline;
  bench::RingOptions options;
  const config::Command app{"WRITEs between two engines of one process; tests/bench/run runs it."};
  app.option("--size", options.load.size, "bytes of a message").within(1, 1 << 30);
  app.option("--window", options.load.window, "messages under way").within(1, 16384);
  app.option("--working-set", options.load.working_set, "bytes that messages lie in, in turn");
  app.option("--seconds", options.seconds, "measured, after the warm-up");
  app.option("--warm-up", options.warm_up, "seconds");
  app.option("--cpus", options.cpus, "processors of the two polling threads");
  app.option("--fifo", options.fifo, "their real-time priority; 0: none").within(0, 90);
  app.flag("--copy", options.copy, "payloads are copied into packets");
  if (const auto ended = paceline::config::read_command_line(app, count, arguments, "ring_load"))
    return *ended;
  options.load.duration = picos_from_micros(static_cast<std::int64_t>(options.seconds * 1e6));
  options.load.warm_up = picos_from_micros(static_cast<std::int64_t>(options.warm_up * 1e6));
  try {
    return bench::run(options);
  } catch (const std::exception& error) {
    return bench::refuse(error.what());
  }
}

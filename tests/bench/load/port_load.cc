// One end of a measured conversation on a DPDK device, in a process of its own; tests/bench/run
// runs two, between peers of the same machine. The answering end (--index 0) says "ready" when its
// device is open and goes on until its input ends; the asking end (--index 1) prints one line of
// JSON and exits.
//
// Modes: write, send, echo: a transport engine. source, sink: packets alone, as fast as the port
// takes or gives them. ping, pong: one packet to and fro.
//
// exit: 0 measured, 1 something went wrong under way, 2 could not start (standard error says why)
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "dataplane/config/command_line.h"
#include "dataplane/driver/clock/tsc_clock.h"
#include "dataplane/port/dpdk/dpdk_port.h"
#include "tests/bench/load/departures.h"
#include "tests/bench/load/load_side.h"
#include "tests/bench/load/own_processor.h"

namespace paceline::bench {
namespace {

struct Options {
  std::string device;
  std::string mode = "write";
  LoadConfig load;
  unsigned mtu = 4096;
  unsigned packets = 8192;
  unsigned memory_mb = 512;
  std::uint64_t gbps = 1000;  // what engines pace to: more than any of these devices does
  double seconds = 1;
  double warm_up = 0.2;
  std::int64_t catch_up_us = 200;
  int cpu = -1;
  int fifo = 0;
  bool huge = false;
  bool copy = false;
};

// The headers of an RC WRITE Middle over IPv4: Ethernet with its check sequence, IP, UDP, BTH,
// ICRC.
constexpr std::uint32_t kFullHeaders = 14 + 20 + 8 + 12 + 4 + 4;

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

int give_up(const std::string& why) {
  std::fprintf(stderr, "port_load: %s\n", why.c_str());
  return 2;
}

bool input_ended(int milliseconds) {
  pollfd in{STDIN_FILENO, POLLIN, 0};
  if (::poll(&in, 1, milliseconds) <= 0) return false;
  char bytes[64];
  return read(STDIN_FILENO, bytes, sizeof bytes) >= 0;
}

void frame(Packet& packet, const Options& options) {
  packet.header.fill(std::byte{0x55});
  packet.header_bytes = 60;
  packet.bth_offset = 0;
  const bool small = options.load.size <= 64;
  packet.payload_bytes = static_cast<std::uint16_t>(
      small ? 0 : std::min<std::uint32_t>(options.load.size, options.mtu));
  packet.payload_kind = packet.payload_bytes == 0 ? PayloadKind::none : PayloadKind::owned;
}

// Packets alone. Returns the counts of the interval.
struct RawResult {
  Picos elapsed{0};
  std::uint64_t packets = 0;
  Histogram round_trips;
};

RawResult pump(DpdkPort& port, const Options& options, const TscClock& clock,
               const std::atomic<bool>& stop) {
  RawResult result;
  Picos started{-1};
  std::uint64_t counted = 0;
  std::uint64_t before = 0;
  bool measuring = false;
  bool outstanding = false;
  Picos sent{0};
  std::array<Packet*, 32> burst;
  const bool sends = options.mode == "source";
  const bool pings = options.mode == "ping";
  while (!stop.load(std::memory_order_acquire)) {
    const Picos now = clock.now();
    if (sends) {
      std::size_t made = 0;
      for (; made < burst.size(); ++made) {
        Packet* const packet = port.packets().alloc();
        if (packet == nullptr) break;
        frame(*packet, options);
        burst[made] = packet;
      }
      const std::size_t taken = port.tx(now, 0, {burst.data(), made});
      for (std::size_t i = taken; i < made; ++i) port.packets().free(burst[i]);
      counted += taken;
    } else {
      const std::size_t n = port.rx(burst);
      if (options.mode == "pong") {
        const std::size_t taken = n == 0 ? 0 : port.tx(now, 0, {burst.data(), n});
        for (std::size_t i = taken; i < n; ++i) port.packets().free(burst[i]);
      } else {
        for (std::size_t i = 0; i < n; ++i) port.packets().free(burst[i]);
      }
      counted += n;
      if (pings && n != 0) {
        if (measuring) {
          result.round_trips.record(static_cast<std::uint64_t>((now - sent).count / 1000));
        }
        outstanding = false;
      }
      // One that was lost, or came before the peer was there, is sent again.
      if (pings && (!outstanding || now - sent > picos_from_micros(100'000))) {
        if ((burst[0] = port.packets().alloc()) != nullptr) {
          frame(*burst[0], options);
          sent = now;
          outstanding = port.tx(now, 0, {burst.data(), 1}) == 1;
          if (!outstanding) port.packets().free(burst[0]);
        }
      }
    }
    if (started.count < 0) {
      if (counted != 0) started = now;
    } else if (!measuring && now - started >= options.load.warm_up) {
      measuring = true;
      started = now;
      before = counted;
    } else if (measuring && result.packets == 0 && now - started >= options.load.duration) {
      result.elapsed = now - started;
      result.packets = counted - before;
      if (options.load.index == 1) break;
    }
  }
  return result;
}

nlohmann::json times(const Histogram& h) {
  return {{"count", h.count()},           {"p50_ns", h.quantile(0.5)}, {"p99_ns", h.quantile(0.99)},
          {"p999_ns", h.quantile(0.999)}, {"max_ns", h.max()},         {"min_ns", h.min()}};
}

int run(const Options& options) {
  EalSettings eal;
  eal.program = "port_load";
  eal.no_huge = !options.huge;
  eal.in_memory = options.huge;
  eal.memory_mb = options.huge ? 0 : options.memory_mb;
  const EalStart start = Eal::start(eal);
  if (start.eal == nullptr) return give_up(start.error);
  DpdkMemorySettings memory_settings;
  memory_settings.payload_room = static_cast<std::uint16_t>(options.mtu);
  memory_settings.packets = options.packets;
  const DpdkMemoryMade memory = DpdkMemory::make(memory_settings);
  if (memory.memory == nullptr) return give_up(memory.error);
  DpdkDeviceSettings device_settings;
  device_settings.device = options.device;
  device_settings.mtu_bytes = static_cast<std::uint16_t>(options.mtu);
  device_settings.lend_payload = !options.copy;
  DpdkMemory* const queue = memory.memory.get();
  const DpdkDeviceOpened opened = DpdkDevice::open(*start.eal, device_settings, {&queue, 1});
  if (opened.device == nullptr) return give_up(opened.error);
  DpdkPortSettings port_settings;
  port_settings.link_rate = rate_from_gbps(options.gbps);
  const DpdkPortMade made = DpdkPort::make(*opened.device, port_settings);
  if (made.port == nullptr) return give_up(made.error);
  DpdkPort& port = *made.port;

  std::printf("ready\n");
  std::fflush(stdout);
  const TscClock clock = TscClock::calibrated();
  // A virtual link needs its peer; and while both poll under real-time scheduling, the threads that
  // connect them may not get a processor.
  for (int tries = 0; !opened.device->link_up(); ++tries) {
    if (tries == 2000) return give_up("the link does not come up");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  std::atomic<bool> stop{false};
  nlohmann::json out;
  out["mode"] = options.mode;
  bool good = true;
  const bool raw = options.mode != "write" && options.mode != "send" && options.mode != "echo";
  const auto until = [&](std::thread& worker, const std::atomic<bool>& finished) {
    while (!finished.load(std::memory_order_acquire)) {
      if (options.load.index == 0 && input_ended(20)) break;
      if (options.load.index == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    stop.store(true, std::memory_order_release);
    worker.join();
  };
  if (raw) {
    RawResult result;
    std::atomic<bool> finished{false};
    std::thread worker([&] {
      const LcoreRegistration known;
      settle(options.cpu, options.fifo);
      result = pump(port, options, clock, stop);
      finished.store(true, std::memory_order_release);
    });
    until(worker, finished);
    const double seconds = static_cast<double>(result.elapsed.count) * 1e-12;
    out["packets_per_s"] = seconds == 0 ? 0 : static_cast<double>(result.packets) / seconds;
    if (!result.round_trips.empty()) out["round_trip"] = times(result.round_trips);
  } else {
    // A full packet of each queue pair every so often, where they have a rate.
    const PortInfo info = port.info();
    const Picos gap = options.load.rate_mbps == 0
                          ? Picos{0}
                          : serialization_time(
                                info.wire.wire_bytes(info.mtu_bytes + kFullHeaders, info.mtu_bytes),
                                Rate{static_cast<std::uint64_t>(options.load.rate_mbps * 1e6)});
    DepartureNotes notes(port, options.load.queue_pairs, kFirstSourcePort, gap);
    const bool paced = options.load.rate_mbps != 0;
    LoadConfig load = options.load;
    load.stagger = gap;
    LoadSide side(load, paced ? static_cast<Port&>(notes) : port);
    double cpu = 0;
    side.at_begin = [&] {
      notes.begin();
      cpu = thread_seconds();
    };
    side.at_end = [&] {
      notes.end();
      cpu = thread_seconds() - cpu;
    };
    if (!side.connect()) return give_up("the queue pairs do not connect");
    std::thread worker([&] {
      const LcoreRegistration known;
      settle(options.cpu, options.fifo);
      WorkerSettings settings;
      settings.name = "load";
      settings.idle.how = Idle::spin;
      Worker loop(settings);
      loop.add({&side.engine(), paced ? static_cast<Port*>(&notes) : &port, &side});
      loop.run(clock, stop);
    });
    until(worker, side.finished());
    const LoadResult& r = side.result();
    const double seconds = static_cast<double>(r.elapsed.count) * 1e-12;
    if (options.load.index == 1 && seconds > 0) {
      out["seconds"] = seconds;
      out["messages_per_s"] = static_cast<double>(r.messages) / seconds;
      out["bytes_per_s"] = static_cast<double>(r.bytes) / seconds;
      out["packets_per_s"] = static_cast<double>(r.tx_packets) / seconds;
      out["packets_per_turn"] = static_cast<double>(r.tx_packets) /
                                static_cast<double>(std::max<std::uint64_t>(1, r.turns));
      out["retransmitted"] = r.retransmitted;
      out["cpu_ns_per_packet"] =
          cpu * 1e9 / static_cast<double>(std::max<std::uint64_t>(1, r.tx_packets));
      if (paced) {
        out["gap_ns"] = static_cast<double>(gap.count) / 1000;
        out["late"] = times(notes.late());
        out["early"] = times(notes.early());
      }
      if (!side.round_trips().empty()) out["round_trip"] = times(side.round_trips());
    }
    if (!r.problem.empty()) {
      out["problem"] = r.problem;
      good = false;
    }
    nlohmann::json counters;
    telemetry::for_each(side.engine().counters(), [&](std::string_view name, auto value) {
      if (value != 0) counters[std::string(name)] = value;
    });
    out["counters"] = counters;
    out["tx_full"] = port.counters().tx_full;
    out["no_packet"] = side.engine().counters().no_packet;
  }
  std::printf("%s\n", out.dump().c_str());
  std::fflush(stdout);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace paceline::bench

int main(int count, char** arguments) {
  using namespace paceline;
  bench::Options options;
  const config::Command app{
      "One end of a measured conversation on a DPDK device; tests/bench/run runs two."};
  app.option("--device", options.device, "DPDK device with its arguments").required();
  app.option("--index", options.load.index, "0 answers, 1 asks and prints the figures")
      .within(0, 1);
  app.option("--mode", options.mode)
      .one_of({"write", "send", "echo", "source", "sink", "ping", "pong"});
  app.option("--size", options.load.size, "bytes of a message, or of a packet").within(1, 1 << 30);
  app.option("--window", options.load.window, "messages under way on each queue pair")
      .within(1, 16384);
  app.option("--queue-pairs", options.load.queue_pairs).within(1, 10000);
  app.option("--working-set", options.load.working_set, "bytes that messages lie in, in turn");
  app.option("--ack-every", options.load.ack_every).within(1, 1024);
  app.option("--catch-up", options.catch_up_us, "microseconds that a late pacer may make up for");
  app.option("--rate", options.load.rate_mbps, "Mb/s of each queue pair; 0: the link's")
      .not_negative();
  app.option("--mtu", options.mtu).one_of({"256", "512", "1024", "2048", "4096"});
  app.option("--packets", options.packets, "of the port's memory");
  app.option("--memory", options.memory_mb, "MB of ordinary memory for DPDK");
  app.option("--gbps", options.gbps, "the rate that engines pace to");
  app.option("--seconds", options.seconds, "measured, after the warm-up");
  app.option("--warm-up", options.warm_up, "seconds");
  app.option("--cpu", options.cpu, "processor of the polling thread");
  app.option("--fifo", options.fifo, "its real-time priority; 0: none").within(0, 90);
  app.flag("--huge", options.huge, "hugepages");
  app.option("--copy", options.copy, "1: payloads are copied into packets, whatever the device");
  if (const auto ended = paceline::config::read_command_line(app, count, arguments, "port_load"))
    return *ended;
  options.load.load = options.mode == "send"   ? bench::Load::send
                      : options.mode == "echo" ? bench::Load::echo
                                               : bench::Load::write;
  options.load.catch_up = picos_from_micros(options.catch_up_us);
  options.load.duration = picos_from_micros(static_cast<std::int64_t>(options.seconds * 1e6));
  options.load.warm_up = picos_from_micros(static_cast<std::int64_t>(options.warm_up * 1e6));
  try {
    return bench::run(options);
  } catch (const std::exception& error) {
    return bench::give_up(error.what());
  }
}

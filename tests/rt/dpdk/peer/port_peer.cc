// One end of a verified conversation on a DPDK device, in a process of its own (devices_test.py
// runs two). Prints "ready" when the device is open, "begun" when some messages are over and "done"
// when everything is sent and received; goes on answering until a line "stop" (or the end of
// standard input) comes; then says what it counted and whether every byte was right.
//
// With "--only source" or "--only sink" there is no engine: full packets are sent as fast as they
// go, or taken in as fast as they come.
//
// exit: 0 verified, 1 not, 2 could not start (standard error says why)
#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>

#include "dataplane/driver/clock/tsc_clock.h"
#include "dataplane/port/dpdk/dpdk_port.h"
#include "tests/rt/dpdk/peer/peer_talk.h"

namespace paceline::test {
namespace {

// One turn of a source or sink.
void source(Port& port, Picos now) {
  std::array<Packet*, 32> burst;
  std::size_t made = 0;
  for (; made < burst.size(); ++made) {
    Packet* const packet = port.packets().alloc();
    if (packet == nullptr) break;
    packet->header.fill(std::byte{0x55});
    packet->header_bytes = 60;
    packet->bth_offset = 0;
    packet->payload_bytes = port.info().mtu_bytes;
    packet->payload_kind = PayloadKind::owned;
    burst[made] = packet;
  }
  const std::size_t sent = port.tx(now, 0, {burst.data(), made});
  for (std::size_t i = sent; i < made; ++i) port.packets().free(burst[i]);
}
void sink(Port& port) {
  std::array<Packet*, 32> burst;
  const std::size_t n = port.rx(burst);
  for (std::size_t i = 0; i < n; ++i) port.packets().free(burst[i]);
}

int pump(DpdkPort& port, bool sending) {
  std::printf("ready\n");
  std::fflush(stdout);
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    const LcoreRegistration known;
    while (!stop.load(std::memory_order_acquire)) {
      if (sending) {
        source(port, Picos{0});
      } else {
        sink(port);
      }
    }
  });
  while (!told_to_stop(10)) continue;
  stop.store(true, std::memory_order_release);
  worker.join();
  say("tx_packets", port.counters().tx_packets);
  say("rx_packets", port.counters().rx_packets);
  say("held", port.packets().in_use());
  std::fflush(stdout);
  return port.packets().in_use() == 0 ? 0 : 1;
}

int run(const Options& options) {
  const auto number = [&](const char* name, unsigned otherwise) {
    return number_of(options, name, otherwise);
  };
  const unsigned index = number("index", 0);
  const auto mtu = static_cast<std::uint16_t>(number("mtu", 4096));
  const EalStart start = Eal::start({});
  if (start.eal == nullptr) return give_up(start.error);

  DpdkMemorySettings memory_settings;
  memory_settings.payload_room = mtu;
  memory_settings.packets = number("packets", 8192);
  const DpdkMemoryMade memory = DpdkMemory::make(memory_settings);
  if (memory.memory == nullptr) return give_up(memory.error);
  DpdkDeviceSettings device_settings;
  device_settings.device = options.at("device");
  device_settings.mtu_bytes = mtu;
  if (const auto pause = options.find("pause"); pause != options.end()) {
    device_settings.pause = pause_mode_of(pause->second);
  }
  DpdkMemory* const queue = memory.memory.get();
  const DpdkDeviceOpened opened = DpdkDevice::open(*start.eal, device_settings, {&queue, 1});
  if (opened.device == nullptr) return give_up(opened.error);
  for (const std::string& note : opened.device->notes()) std::printf("note %s\n", note.c_str());
  std::printf("is %s\n", opened.device->capabilities().summary().c_str());
  for (const std::string& line : opened.device->capabilities().missing()) {
    std::printf("missing %s\n", line.c_str());
  }
  DpdkPortSettings port_settings;
  port_settings.link_rate = rate_from_mbps(number("mbps", 10'000));
  const DpdkPortMade made = DpdkPort::make(*opened.device, port_settings);
  if (made.port == nullptr) return give_up(made.error);
  DpdkPort& port = *made.port;

  if (const auto only = options.find("only"); only != options.end()) {
    return pump(port, only->second == "source");
  }

  std::atomic<int> finished{0};
  std::atomic<bool> stop{false};
  std::string verdict;
  {
    VerifiedSide side(
        {index, cc::AlgorithmId::fixed, wire::MacAddress::local(index + 1), number("ipv6", 0) != 0},
        port, finished);
    if (!side.connect(side.expected_peer(wire::MacAddress::local(2 - index)))) {
      return give_up("the queue pair does not connect");
    }
    std::printf("ready\n");
    std::fflush(stdout);
    const TscClock clock = TscClock::calibrated();
    std::thread worker([&] {
      const LcoreRegistration known;
      Worker loop;
      loop.add({&side.engine(), &port, &side});
      loop.run(clock, stop);
    });
    attend(side, finished);
    stop.store(true, std::memory_order_release);
    worker.join();
    verdict = side.verdict();
    say_engine(side.engine());
  }
  say_port(port);
  return conclude(verdict, port.packets().in_use());
}

}  // namespace
}  // namespace paceline::test

int main(int count, char** arguments) {
  const paceline::test::Options options = paceline::test::options_of(count, arguments);
  if (options.count("device") == 0) {
    return paceline::test::give_up(
        "usage: port_peer --device NAME,ARGUMENTS [--index 0|1] [--mtu N] "
        "[--packets N] [--mbps N] [--ipv6 1]");
  }
  try {
    return paceline::test::run(options);
  } catch (const std::exception& error) {
    return paceline::test::give_up(error.what());
  }
}

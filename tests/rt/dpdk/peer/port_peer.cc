// One end of a verified conversation on a DPDK device, in a process of its own (devices_test.py
// runs two). Prints "ready" when the device is open, "begun" when some messages are over and "done"
// when everything is sent and received; goes on answering until a line "stop" (or the end of
// standard input) comes; then says what it counted and whether every byte was right.
//
// With "--only source" or "--only sink" there is no engine: full packets are sent as fast as they
// go, or taken in as fast as they come.
//
// exit: 0 verified, 1 not, 2 could not start (standard error says why)
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>

#include "dataplane/driver/tsc_clock.h"
#include "dataplane/port/dpdk_port.h"
#include "tests/rt/support/verified_side.h"

namespace paceline::test {
namespace {

void say(const char* name, std::uint64_t value) {
  std::printf("%s %llu\n", name, static_cast<unsigned long long>(value));
}

// A "stop" or the end of the input within the time?
bool told_to_stop(int milliseconds) {
  pollfd in{STDIN_FILENO, POLLIN, 0};
  if (::poll(&in, 1, milliseconds) <= 0) return false;
  char line[64];
  return read(STDIN_FILENO, line, sizeof line) >= 0;
}

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

int give_up(const std::string& why) {
  std::fprintf(stderr, "port_peer: %s\n", why.c_str());
  return 2;
}

int run(const std::map<std::string, std::string>& options) {
  const auto number = [&](const char* name, unsigned otherwise) {
    const auto found = options.find(name);
    return found == options.end() ? otherwise : static_cast<unsigned>(std::stoul(found->second));
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
    bool begun = false;
    bool done = false;
    while (!told_to_stop(5)) {
      if (!begun && side.progress() >= 5) {
        begun = true;
        std::printf("begun\n");
      }
      if (!done && finished.load(std::memory_order_acquire) != 0) {
        done = true;
        std::printf("done\n");
      }
      std::fflush(stdout);
    }
    stop.store(true, std::memory_order_release);
    worker.join();
    verdict = side.verdict();
    say("malformed", telemetry::malformed_total(side.engine().counters()));
    say("retransmitted_bytes", side.engine().counters().retransmitted_bytes);
  }
  const DpdkPortCounters& c = port.counters();
  say("tx_packets", c.tx_packets);
  say("rx_packets", c.rx_packets);
  say("rx_other", c.rx_other);
  say("rx_multi_segment", c.rx_multi_segment);
  say("rx_moved", c.rx_moved);
  say("rx_too_long", c.rx_too_long);
  say("rx_no_packet", c.rx_no_packet);
  say("tx_full", c.tx_full);
  say("held", port.packets().in_use());
  say("link_up", opened.device->link_up());
  std::printf("verdict %s\n", verdict.empty() ? "verified" : verdict.c_str());
  std::fflush(stdout);
  return verdict.empty() && port.packets().in_use() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace paceline::test

int main(int count, char** arguments) {
  std::map<std::string, std::string> options;
  for (int i = 1; i + 1 < count; i += 2) {
    options[arguments[i] + std::strspn(arguments[i], "-")] = arguments[i + 1];
  }
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

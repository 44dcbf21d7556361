// A host of ours on a packet socket, for kernel_neighbour_test.py: answers ARP, neighbour
// discovery and echo, and sends a RoCEv2 packet every 20 ms to each address given. Runs until its
// standard input ends; then prints what it counted, "name value" a line.
//
// usage: kernel_peer INTERFACE MAC VLAN ADDRESS/PREFIX... [to ADDRESS...]     VLAN 0: untagged
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/driver/clock/tsc_clock.h"
#include "dataplane/neighbour/resolving_port.h"
#include "dataplane/wire/packet/build.h"
#include "dataplane/wire/packet/icrc.h"
#include "tests/interop/packet_socket_port.h"

namespace {

using namespace paceline;
using namespace paceline::neighbour;

constexpr Picos kMillisecond = picos_from_micros(1000);
constexpr Picos kInterval = kMillisecond * 20;

template <class T>
T must(const std::optional<T>& value, const std::string& error) {
  if (!value) throw std::invalid_argument(error);
  return *value;
}

wire::IpAddress ip_from(std::string_view text) {
  std::string error;
  const auto address = wire::ip_address_from_text(text, &error);
  return must(address, error);
}

struct Options {
  HostConfig host;
  std::vector<wire::IpAddress> destinations;
};

Options options_from(int argc, char** argv) {
  Options options;
  std::string error;
  const auto mac = wire::mac_address_from_text(argv[2], &error);
  options.host.mac = must(mac, error);
  if (const int vlan = std::atoi(argv[3]); vlan != 0) {
    options.host.vlan_id = static_cast<std::uint16_t>(vlan);
  }
  bool to = false;
  for (int i = 4; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "to") {
      to = true;
    } else if (to) {
      options.destinations.push_back(ip_from(word));
    } else {
      const std::size_t slash = word.find('/');
      const auto bits = static_cast<std::uint8_t>(std::atoi(word.c_str() + slash + 1));
      options.host.addresses.push_back({ip_from(word.substr(0, slash)), bits});
    }
  }
  options.host.ip_mtu = 1500;
  // A lifetime in seconds, so that a test sees all of it.
  options.host.timing.reachable = kMillisecond * 300;
  options.host.timing.delay_first_probe = kMillisecond * 100;
  options.host.timing.retransmit = kMillisecond * 200;
  return options;
}

Packet* roce_packet(Port& port, const HostRoutes& routes, const wire::IpAddress& to) {
  Packet* packet = port.packets().alloc();
  if (packet == nullptr) return nullptr;
  wire::FlowAddressing flow;
  flow.source = routes.address(routes.asks_as({}, to));
  flow.destination = to;
  wire::TransportFields fields;
  fields.opcode = wire::Opcode::rc_send_only;
  const wire::HeaderTemplate header = wire::make_header_template(flow);
  packet->header_bytes =
      static_cast<std::uint16_t>(wire::build_data(header, packet->header, fields));
  packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  packet->payload_kind = PayloadKind::none;
  packet->payload_bytes = 0;
  packet->icrc = wire::icrc(packet->header_view(), wire::kEthernetBytes);
  return packet;
}

bool input_ended() {
  pollfd entry{STDIN_FILENO, POLLIN, 0};
  char byte;
  return poll(&entry, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

void print(const char* name, std::uint64_t value) {
  std::printf("%s %llu\n", name, static_cast<unsigned long long>(value));
}

int run(int argc, char** argv) {
  const Options options = options_from(argc, argv);
  test::PacketSocketPort socket(argv[1]);
  ResolvingPort port(socket, options.host, Random(1));
  const TscClock clock = TscClock::calibrated();
  std::puts("ready");
  std::fflush(stdout);
  Picos next_send{0};
  std::uint64_t offered = 0;
  while (!input_ended()) {
    const Picos now = clock.now();
    port.poll(now);
    std::array<Packet*, 32> burst;
    const std::size_t received = port.rx(burst);
    for (std::size_t i = 0; i < received; ++i) port.packets().free(burst[i]);
    if (now >= next_send) {
      next_send = now + kInterval;
      for (const wire::IpAddress& to : options.destinations) {
        Packet* packet = roce_packet(port, port.host().routes(), to);
        if (packet == nullptr) continue;
        ++offered;
        if (port.tx(now, kDefaultDataClass, {&packet, 1}) == 0) port.packets().free(packet);
      }
    }
    socket.wait(1);
  }
  const HostCounters& host = port.host().counters();
  const NeighbourCounters& table = port.table().counters();
  print("offered", offered);
  print("sent", port.counters().tx_sent);
  print("dropped", port.counters().tx_dropped());
  print("roce_received", port.counters().rx_engine);
  print("arp_answers", host.arp_answers);
  print("nd_answers", host.nd_answers);
  print("duplicates_denied", host.duplicates_denied);
  print("conflicts", host.conflicts);
  print("echo_answers", host.echo_answers);
  print("solicits_multicast", table.solicits_multicast);
  print("solicits_unicast", table.solicits_unicast);
  print("resolved", table.resolved);
  print("confirmed", table.confirmed);
  print("failed", table.failed);
  for (std::size_t i = 1; i < wire::kHostErrors; ++i) {
    const auto error = static_cast<wire::HostError>(i);
    const std::string name = "refused_" + std::string(wire::host_error_name(error));
    print(name.c_str(), host.errors.of(error));
  }
  const std::string broken = port.check_conservation();
  if (!broken.empty()) std::fprintf(stderr, "kernel_peer: %s\n", broken.c_str());
  return broken.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fputs("usage: kernel_peer INTERFACE MAC VLAN ADDRESS/PREFIX... [to ADDRESS...]\n", stderr);
    return 2;
  }
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kernel_peer: %s\n", e.what());
    return 2;
  }
}

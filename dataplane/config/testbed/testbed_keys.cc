// The keys of a testbed file.
#include <fmt/format.h>

#include <array>

#include "dataplane/config/testbed/testbed_fields.h"
#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/config/toml/quantity.h"

namespace paceline::config {

namespace {

constexpr double kMiB = 1024.0 * 1024.0;

constexpr auto kEalKeys = std::to_array<KeySpec>({
    {.path = "eal.no_huge",
     .meaning = "Ordinary pages: no privilege, no preparation. Enough for virtual devices; a "
                "physical one needs hugepages or an IOMMU."},
    {.path = "eal.in_memory", .meaning = "Hugepages without files, on demand. Not with `no_huge`."},
    {.path = "eal.memory",
     .form = Form::bytes,
     .min = 0,
     .max = 1024 * 1024 * kMiB,
     .meaning = "With `no_huge`, all memory of the process, at least 64MiB; with hugepages, memory "
                "taken at the start, 0 for on demand."},
    {.path = "eal.file_prefix",
     .meaning = "Prefix of the process's files; needed if several processes share a machine. "
                "Empty: no files."},
    {.path = "eal.lcores",
     .meaning = "In DPDK's syntax, \"0@0,1@1\". Empty: one lcore, on the processors that the "
                "process may use."},
});

constexpr std::string_view kPause[] = {"keep", "off", "receive", "send", "both"};

constexpr std::string_view kClock[] = {"device", "poll"};

constexpr auto kPortKeys = std::to_array<KeySpec>({
    {.path = "port.name", .meaning = "Name of the port. Required."},
    {.path = "port.device",
     .meaning = "The device, with its arguments as DPDK writes them: "
                "\"net_memif0,role=client,bsize=4608\", \"0000:3b:00.0\". Required."},
    {.path = "port.bond",
     .meaning = "Name of a NIC. All ports of the same `bond` are that one NIC, whose queue pairs "
                "outlive ports; each in a network of its own. Only the first has a [port.host]; "
                "rate and MTU are alike."},
    {.path = "port.rate",
     .min = kLeastRate,
     .max = kMostRate,
     .meaning =
         "Rate to which engines pace. Default: the rate that the device reports, if it does."},
    {.path = "port.base_rtt",
     .min = 1e6,
     .max = 1e12,
     .meaning = "`testbed up`: round trip to a peer with empty queues, up to the answer. "
                "Congestion control derives its first windows and rates from it."},
    {.path = "port.mtu",
     .min = 256,
     .max = 4096,
     .meaning = "RoCE path MTU: 256, 512, 1024, 2048 or 4096."},
    {.path = "port.queues",
     .min = 1,
     .max = 64,
     .meaning = "Queues of the device to use, each for one engine."},
    {.path = "port.packets",
     .min = 256,
     .max = 4'000'000,
     .meaning = "Packets per queue, shared by device and engine."},
    {.path = "port.rx_descriptors", .min = 32, .max = 32768, .meaning = "Per queue."},
    {.path = "port.tx_descriptors", .min = 32, .max = 32768, .meaning = "Per queue."},
    {.path = "port.lend_payload",
     .meaning = "Sends payloads from registered memory, without a copy, if the device allows it."},
    {.path = "port.promiscuous", .meaning = "Receives frames for other MAC addresses as well."},
    {.path = "port.pause",
     .form = Form::choice,
     .choices = kPause,
     .meaning = "Pause frames of the link (IEEE 802.3x): obeyed (`receive`), sent, both, neither; "
                "`keep` leaves the device's setting."},
    {.path = "port.clock",
     .form = Form::choice,
     .choices = kClock,
     .meaning = "Arrival time of packets, for round trips: the time stamp of the `device`, if it "
                "has one, or the time of the `poll`."},
});

constexpr auto kHostKeys = std::to_array<KeySpec>({
    {.path = "port.host.vlan",
     .min = 0,
     .max = 4094,
     .meaning = "802.1Q: frames are sent with this tag, and only frames with this tag are "
                "received. 0: no tag."},
    {.path = "port.host.ip_mtu",
     .min = 1280,
     .max = 9216,
     .meaning = "Largest IP datagram on the path. It sets the path MTU: 4096 from 4180 on, 2048 "
                "from 2132, 1024 below."},
    {.path = "port.host.answer_echo", .meaning = "Whether a ping is answered."},
    {.path = "port.host.echo_per_second", .min = 1, .max = 1e6, .meaning = "At most."},
    {.path = "port.host.announcements",
     .min = 0,
     .max = 10,
     .meaning = "Announcements of own addresses at the start."},
    {.path = "port.host.neighbours", .min = 512, .max = 65536, .meaning = "Known at a time."},
    {.path = "port.host.retransmit",
     .min = 1e9,
     .max = 60e12,
     .meaning = "Between two requests for an address."},
    {.path = "port.host.reachable",
     .min = 1e9,
     .max = 3600e12,
     .meaning = "How long an answer is trusted; times 0.5 to 1.5."},
    {.path = "port.host.failed_hold",
     .min = 1e9,
     .max = 3600e12,
     .meaning = "How long a neighbour that did not answer is not asked again."},
    {.path = "port.host.stale_lifetime",
     .min = 1e9,
     .max = 86400e12,
     .meaning = "After which an unused neighbour is forgotten."},
});

}  // namespace

std::string reference_rows(std::span<const KeySpec> keys,
                           const std::function<Field(std::string_view)>& field_of) {
  std::string text = "| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const KeySpec& key : keys) {
    const Field field = field_of(key.name());
    const std::string allowed = allowed_text(key, field);
    const std::string otherwise = value_text(key, field);
    text += fmt::format("| `{}` | {}{}{} | {} | {} |\n", key.path, type_text(key, field),
                        allowed.empty() ? "" : ", ", allowed,
                        otherwise == "none" ? "" : "`" + otherwise + "`", key.meaning);
  }
  return text;
}

std::span<const KeySpec> eal_keys() { return kEalKeys; }
std::span<const KeySpec> port_keys() { return kPortKeys; }
std::span<const KeySpec> host_keys() { return kHostKeys; }

Field eal_field(EalConfig& eal, std::string_view name) {
  if (name == "no_huge") return &eal.no_huge;
  if (name == "in_memory") return &eal.in_memory;
  if (name == "memory") return &eal.memory;
  if (name == "file_prefix") return &eal.file_prefix;
  return &eal.lcores;
}

Field port_field(PortConfig& port, std::string_view name) {
  if (name == "name") return &port.name;
  if (name == "bond") return &port.bond;
  if (name == "device") return &port.device;
  if (name == "rate") return &port.rate;
  if (name == "base_rtt") return &port.base_rtt;
  if (name == "mtu") return &port.mtu;
  if (name == "queues") return &port.queues;
  if (name == "packets") return &port.packets;
  if (name == "rx_descriptors") return &port.rx_descriptors;
  if (name == "tx_descriptors") return &port.tx_descriptors;
  if (name == "lend_payload") return &port.lend_payload;
  if (name == "promiscuous") return &port.promiscuous;
  if (name == "pause") return &port.pause;
  return &port.clock;
}

Field host_field(HostConfig& host, std::string_view name) {
  if (name == "vlan") return &host.vlan;
  if (name == "ip_mtu") return &host.ip_mtu;
  if (name == "answer_echo") return &host.answer_echo;
  if (name == "echo_per_second") return &host.echo_per_second;
  if (name == "announcements") return &host.announcements;
  if (name == "neighbours") return &host.neighbours;
  if (name == "retransmit") return &host.retransmit;
  if (name == "reachable") return &host.reachable;
  if (name == "failed_hold") return &host.failed_hold;
  return &host.stale_lifetime;
}

std::string testbed_reference_markdown() {
  EalConfig eal;
  PortConfig port;
  HostConfig host;
  std::string text;
  text += reference_rows(eal_keys(), [&](std::string_view name) { return eal_field(eal, name); });
  text +=
      "| `eal.vdevs` | array of texts | | Devices to create at the start, except those that a port "
      "names. |\n"
      "| `eal.pci_allow` | array of texts | | PCI addresses that may be used. Empty: PCI is not "
      "scanned. |\n\n";
  text +=
      reference_rows(port_keys(), [&](std::string_view name) { return port_field(port, name); });
  text +=
      "| `port.mac` | text, \"02:00:00:00:00:01\" | | MAC address. Default: the device's own. "
      "|\n\n";
  text +=
      reference_rows(host_keys(), [&](std::string_view name) { return host_field(host, name); });
  text +=
      "| `port.host.addresses` | array of texts, \"10.0.0.1/24\" | | One to eight, IPv4 and IPv6, "
      "each with the prefix length of the link. Required. |\n"
      "| `port.host.gateway_v4`, `port.host.gateway_v6` | text, an address | | Next hop to "
      "addresses that are not on the link. |\n"
      "| `port.host.fixed` | array of texts, \"10.0.0.9 02:00:00:00:00:09\" | | Neighbours with a "
      "fixed MAC address, never asked for or changed. |\n";
  return text;
}

}  // namespace paceline::config

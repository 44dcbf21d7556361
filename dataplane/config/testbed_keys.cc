// The keys of a testbed file.
#include <fmt/format.h>

#include <array>

#include "dataplane/config/testbed_fields.h"
#include "dataplane/config/testbed_reader.h"

namespace paceline::config {

namespace {

constexpr double kLeastRate = 1e6, kMostRate = 3.2e12;  // bit/s
constexpr double kMiB = 1024.0 * 1024.0;

constexpr auto kEalKeys = std::to_array<KeySpec>({
    {.path = "eal.no_huge",
     .meaning = "Ordinary pages: no privilege, no preparation. Carries every virtual device; a "
                "physical one wants hugepages or an IOMMU."},
    {.path = "eal.in_memory", .meaning = "Hugepages without files, on demand. Not with `no_huge`."},
    {.path = "eal.memory",
     .form = Form::bytes,
     .min = 0,
     .max = 1024 * 1024 * kMiB,
     .meaning = "With `no_huge` all there will ever be, 64MiB at least; with hugepages what is "
                "taken at the start, 0 for on demand."},
    {.path = "eal.file_prefix",
     .meaning = "Names this process's files where several share a machine. Empty: no files."},
    {.path = "eal.lcores",
     .meaning = "In DPDK's syntax, \"0@0,1@1\". Empty: one, on the processors that the process "
                "may use."},
});

constexpr auto kPortKeys = std::to_array<KeySpec>({
    {.path = "port.name", .meaning = "How others call it. Required."},
    {.path = "port.device",
     .meaning = "The device, with its arguments as DPDK writes them: "
                "\"net_memif0,role=client,bsize=4608\", \"0000:3b:00.0\". Required."},
    {.path = "port.rate",
     .min = kLeastRate,
     .max = kMostRate,
     .meaning = "What engines pace to. Without it what the device says; it must know then."},
    {.path = "port.mtu",
     .min = 256,
     .max = 4096,
     .meaning = "RoCE path MTU: 256, 512, 1024, 2048 or 4096."},
    {.path = "port.queues",
     .min = 1,
     .max = 64,
     .meaning = "Queues of the device in use, each for one engine."},
    {.path = "port.packets",
     .min = 256,
     .max = 4'000'000,
     .meaning = "Packets of each queue: in the device's hands and the engine's."},
    {.path = "port.rx_descriptors", .min = 32, .max = 32768, .meaning = "Of each queue."},
    {.path = "port.tx_descriptors", .min = 32, .max = 32768, .meaning = "Of each queue."},
    {.path = "port.promiscuous", .meaning = "Frames for others come in as well."},
});

void add_rows(std::string& text, std::span<const KeySpec> keys, auto field_of) {
  text += "| key | value | default | meaning |\n|---|---|---|---|\n";
  for (const KeySpec& key : keys) {
    const Field field = field_of(key.name());
    const std::string allowed = allowed_text(key, field);
    const std::string otherwise = value_text(key, field);
    text += fmt::format("| `{}` | {}{}{} | {} | {} |\n", key.path, type_text(key, field),
                        allowed.empty() ? "" : ", ", allowed,
                        otherwise == "none" ? "" : "`" + otherwise + "`", key.meaning);
  }
}

}  // namespace

std::span<const KeySpec> eal_keys() { return kEalKeys; }
std::span<const KeySpec> port_keys() { return kPortKeys; }

Field eal_field(EalConfig& eal, std::string_view name) {
  if (name == "no_huge") return &eal.no_huge;
  if (name == "in_memory") return &eal.in_memory;
  if (name == "memory") return &eal.memory;
  if (name == "file_prefix") return &eal.file_prefix;
  return &eal.lcores;
}

Field port_field(PortConfig& port, std::string_view name) {
  if (name == "name") return &port.name;
  if (name == "device") return &port.device;
  if (name == "rate") return &port.rate;
  if (name == "mtu") return &port.mtu;
  if (name == "queues") return &port.queues;
  if (name == "packets") return &port.packets;
  if (name == "rx_descriptors") return &port.rx_descriptors;
  if (name == "tx_descriptors") return &port.tx_descriptors;
  return &port.promiscuous;
}

std::string testbed_reference_markdown() {
  EalConfig eal;
  PortConfig port;
  std::string text;
  add_rows(text, eal_keys(), [&](std::string_view name) { return eal_field(eal, name); });
  text +=
      "| `eal.vdevs` | array of texts | | Devices to make at the start; one that a port names need "
      "not be here. |\n"
      "| `eal.pci_allow` | array of texts | | PCI addresses that may be taken. Empty: PCI is not "
      "looked at. |\n\n";
  add_rows(text, port_keys(), [&](std::string_view name) { return port_field(port, name); });
  text +=
      "| `port.mac` | text, \"02:00:00:00:00:01\" | | Its MAC address. Without it the device's "
      "own. |\n";
  return text;
}

}  // namespace paceline::config

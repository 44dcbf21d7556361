#include "dataplane/config/testbed/testbed_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "dataplane/config/scenario/document.h"
#include "dataplane/config/testbed/testbed_fields.h"
#include "dataplane/config/testbed/testbed_table.h"

namespace paceline::config {

namespace {

using Type = TomlNode::Type;

class TestbedReader {
 public:
  TestbedReader(const TomlNode& root, Diagnostics& errors, Testbed& out)
      : root_(root), errors_(errors), out_(out) {
    context_.errors = &errors;
  }

  // One that may as well be of emulated hosts.
  void read_either(const ReaderOptions& options, const std::string& folder) {
    const TomlMember* fabric = root_.find("fabric");
    context_.algorithms = options.algorithms;
    context_.load_plugin = options.load_plugin;
    if (fabric == nullptr) return read();
    context_.folder = folder;
    read_emulated(root_, out_, context_);
  }

  void read() {
    const std::string_view valid[] = {"schema", "eal", "port", "cc", "transport", "service"};
    if (const TomlMember* m = root_.find("fabric")) {
      return errors_.add(m->where,
                         "[fabric] makes a testbed of emulated hosts, for `paceline testbed up`; "
                         "ports of this machine, [[port]], are needed here");
    }
    for (const TomlMember& m : root_.members) {
      if (m.key == "eal") {
        read_eal(m.value);
      } else if (m.key == "port") {
        each_table(m.value, "port", context_, [&](const TomlNode& table) { read_port(table); });
      } else if (m.key == "service") {
        read_service(m.value, out_.service, context_);
      } else if (std::find(std::begin(valid), std::end(valid), m.key) == std::end(valid)) {
        report_unknown_key(m, "", valid, context_);
      }
    }
    read_port_engines(root_, out_, context_);
    const TomlMember* ports = root_.find("port");
    if (ports == nullptr ||
        (ports->value.type == TomlNode::Type::array && ports->value.items.empty())) {
      errors_.add(root_.where, "a testbed needs at least one [[port]]");
    }
  }

 private:
  static constexpr std::size_t kMostBonded = 8;

  void fail(const TomlNode& node, std::string_view key, std::string_view why) {
    fail_value(context_, node, key, why);
  }

  // Template files have "<PCI address>" and the like, which the user must fill in.
  void refuse_placeholder(const TomlNode& node, std::string_view key) {
    if (!node.text.starts_with('<')) return;
    fail(node, key, "a placeholder; fill in what it names, the head of the file says how");
  }

  void read_eal(const TomlNode& table) {
    if (!table.is_table()) return errors_.add(table.where, "expected a table, [eal]");
    EalConfig& eal = out_.eal;
    read_testbed_table(
        table, "eal", eal_keys(), {"vdevs", "pci_allow"}, context_,
        [&](std::string_view name) { return eal_field(eal, name); },
        [&](const TomlMember& m) {
          std::vector<std::string>& target = m.key == "vdevs" ? eal.vdevs : eal.pci_allow;
          read_texts(m, "eal", context_, [&](const TomlNode& item) {
            refuse_placeholder(item, fmt::format("eal.{}", m.key));
            target.push_back(item.text);
          });
        });
    if (const TomlMember* m = table.find("in_memory"); m != nullptr && eal.in_memory) {
      if (eal.no_huge) {
        fail(m->value, "eal.in_memory", "is about hugepages; allowed with eal.no_huge = false");
      } else if (!eal.file_prefix.empty()) {
        fail(m->value, "eal.in_memory",
             "means no files; eal.file_prefix = \"" + eal.file_prefix + "\" cannot be kept");
      }
    }
    constexpr std::uint64_t kLeast = 64ULL << 20;
    if (const TomlMember* m = table.find("memory");
        m != nullptr && eal.no_huge && eal.memory < kLeast) {
      fail(m->value, "eal.memory", "with eal.no_huge = true 64MiB is the least");
    }
  }

  void read_port(const TomlNode& table) {
    PortConfig port;
    read_testbed_table(
        table, "port", port_keys(), {"mac", "host"}, context_,
        [&](std::string_view name) { return port_field(port, name); },
        [&](const TomlMember& m) {
          if (m.key == "mac") {
            take_mac(m.value, port);
          } else {
            port.host = read_port_host(m.value, context_);
          }
        });
    if (const TomlMember* m = table.find("host"); m != nullptr && port.queues != 1) {
      errors_.add(
          m->where,
          fmt::format("port.host: neighbours answer to one queue; port.queues = {}", port.queues));
    }
    for (const std::string_view key : {"name", "device"}) {
      const TomlMember* m = table.find(key);
      if (m == nullptr) {
        errors_.add(table.where, fmt::format("a [[port]] needs \"{}\"", key));
      } else if (m->value.type == Type::text && m->value.text.empty()) {
        fail(m->value, fmt::format("port.{}", key), "expected a text that is not empty");
      } else if (m->value.type == Type::text) {
        refuse_placeholder(m->value, fmt::format("port.{}", key));
      }
    }
    const auto fits = {256U, 512U, 1024U, 2048U, 4096U};
    if (const TomlMember* m = table.find("mtu");
        m != nullptr && std::find(fits.begin(), fits.end(), port.mtu) == fits.end()) {
      fail(m->value, "port.mtu", "allowed is 256, 512, 1024, 2048 or 4096");
    }
    if (const TomlMember* m = table.find("packets");
        m != nullptr && port.packets < port.rx_descriptors + port.tx_descriptors + 32) {
      fail(m->value, "port.packets",
           fmt::format("the descriptors alone hold {}; allowed is {} or more",
                       port.rx_descriptors + port.tx_descriptors,
                       port.rx_descriptors + port.tx_descriptors + 32));
    }
    // Two ports on one device are two queues of it.
    const auto device_name = [](const std::string& device) {
      return device.substr(0, device.find(','));
    };
    for (const PortConfig& other : out_.ports) {
      if (const TomlMember* m = table.find("name"); m != nullptr && other.name == port.name) {
        fail(m->value, "port.name", "another port has this name");
      }
      if (const TomlMember* m = table.find("device");
          m != nullptr && device_name(other.device) == device_name(port.device)) {
        fail(m->value, "port.device",
             fmt::format("port \"{}\" has this device; use its queues", other.name));
      }
    }
    if (const TomlMember* m = table.find("bond"); m != nullptr) check_bond(m->value, port);
    const TomlMember* device = table.find("device");
    port.where = to_string(device == nullptr ? table.where : device->value.where);
    out_.ports.push_back(std::move(port));
  }

  // Whether the port fits the others of its bond that stand before it.
  void check_bond(const TomlNode& node, const PortConfig& port) {
    if (!is_nic_name(port.bond)) {
      return fail(node, "port.bond",
                  "programs see this name: expected letters, digits, \"-\" and \"_\", at most 31");
    }
    std::size_t count = 1;
    const PortConfig* first = nullptr;
    for (const PortConfig& other : out_.ports) {
      if (other.bond == port.bond) ++count;
      if (other.bond == port.bond && first == nullptr) first = &other;
    }
    if (first == nullptr) return;
    if (port.host) fail(node, "port.bond", "only the first port of a bond has a [port.host]");
    if (port.rate != first->rate || port.mtu != first->mtu || port.queues != first->queues) {
      fail(node, "port.bond",
           fmt::format("expected rate, mtu and queues of port \"{}\", the first", first->name));
    }
    if (count > kMostBonded) {
      fail(node, "port.bond", fmt::format("a NIC has at most {} ports", kMostBonded));
    }
  }

  void take_mac(const TomlNode& node, PortConfig& port) {
    const auto mac =
        node.type == TomlNode::Type::text ? wire::mac_address_from_text(node.text) : std::nullopt;
    if (!mac) return fail(node, "port.mac", "expected six bytes as in \"02:00:00:00:00:01\"");
    if (mac->is_multicast()) return fail(node, "port.mac", "a group address; a port has its own");
    port.mac = *mac;
  }

  const TomlNode& root_;
  Diagnostics& errors_;
  Testbed& out_;
  ReadContext context_;
};

}  // namespace

Read<Testbed> read_testbed_text(std::string_view text, const std::string& source) {
  return read_document(text, source, Testbed{},
                       [](TomlNode& root, Testbed& out, Diagnostics& errors) {
                         TestbedReader(root, errors, out).read();
                       });
}

Read<Testbed> read_testbed_text(std::string_view text, const std::string& source,
                                const std::string& folder, const ReaderOptions& options) {
  Testbed start;
  start.name = default_name(source, start.name);
  return read_document(text, source, std::move(start),
                       [&](TomlNode& root, Testbed& out, Diagnostics& errors) {
                         for (const Override& o : split_overrides(options.overrides, errors)) {
                           apply_override(root, o.path, o.value, errors);
                         }
                         forgive_replaced_choices(root);
                         TestbedReader(root, errors, out).read_either(options, folder);
                       });
}

Read<Testbed> read_testbed_file(const std::string& path, const ReaderOptions& options) {
  Read<std::string> text = read_text_file(path, kLongestDocument);
  if (!text.ok()) return {{}, std::move(text.errors)};
  return read_testbed_text(text.value, path, folder_of(path), options);
}

Read<Testbed> read_testbed_file(const std::string& path) {
  Read<std::string> text = read_text_file(path, kLongestDocument);
  if (!text.ok()) return {{}, std::move(text.errors)};
  return read_testbed_text(text.value, path);
}

}  // namespace paceline::config

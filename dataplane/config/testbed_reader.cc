#include "dataplane/config/testbed_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "dataplane/config/document.h"
#include "dataplane/config/table_reader.h"
#include "dataplane/config/testbed_fields.h"

namespace paceline::config {

namespace {

using Type = TomlNode::Type;

class TestbedReader {
 public:
  TestbedReader(const TomlNode& root, Diagnostics& errors, Testbed& out)
      : root_(root), errors_(errors), out_(out) {
    context_.errors = &errors;
  }

  void read() {
    const std::string_view valid[] = {"schema", "eal", "port"};
    for (const TomlMember& m : root_.members) {
      if (m.key == "eal") {
        read_eal(m.value);
      } else if (m.key == "port") {
        read_ports(m.value);
      } else if (m.key != "schema") {
        report_unknown_key(m, "", valid, context_);
      }
    }
    if (root_.find("port") == nullptr) {
      errors_.add(root_.where, "a testbed needs at least one [[port]]");
    }
  }

 private:
  void fail(const TomlNode& node, std::string_view key, std::string_view why) {
    errors_.add(node.where, fmt::format("{} = {}: {}", key, describe(node), why));
  }

  // Every key of a table by its row. `others`: names that `take_other` reads.
  template <class FieldOf, class TakeOther>
  void read_table(const TomlNode& table, std::string_view name, std::span<const KeySpec> keys,
                  std::vector<std::string_view> others, FieldOf field_of, TakeOther take_other) {
    std::vector<std::string_view> valid;
    for (const KeySpec& key : keys) valid.push_back(key.name());
    valid.insert(valid.end(), others.begin(), others.end());
    for (const TomlMember& m : table.members) {
      const auto key = std::find_if(keys.begin(), keys.end(),
                                    [&](const KeySpec& k) { return k.name() == m.key; });
      if (key != keys.end()) {
        read_value(*key, field_of(m.key), m.value, context_);
      } else if (std::find(others.begin(), others.end(), m.key) != others.end()) {
        take_other(m);
      } else {
        report_unknown_key(m, name, valid, context_);
      }
    }
  }

  void take_texts(const TomlMember& m, std::string_view table, std::vector<std::string>& target) {
    const std::string path = fmt::format("{}.{}", table, m.key);
    if (m.value.type != Type::array) return fail(m.value, path, "expected an array of texts");
    for (const TomlNode& item : m.value.items) {
      if (item.type != Type::text || item.text.empty()) {
        fail(item, path, "expected texts that are not empty");
      } else {
        target.push_back(item.text);
      }
    }
  }

  void read_eal(const TomlNode& table) {
    if (!table.is_table()) return errors_.add(table.where, "expected a table, [eal]");
    EalConfig& eal = out_.eal;
    read_table(
        table, "eal", eal_keys(), {"vdevs", "pci_allow"},
        [&](std::string_view name) { return eal_field(eal, name); },
        [&](const TomlMember& m) {
          take_texts(m, "eal", m.key == "vdevs" ? eal.vdevs : eal.pci_allow);
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

  void read_ports(const TomlNode& list) {
    if (list.type != Type::array || list.items.empty()) {
      return errors_.add(list.where, "port: expected an array of tables, [[port]]");
    }
    for (const TomlNode& item : list.items) {
      if (!item.is_table()) {
        errors_.add(item.where, fmt::format("{}: expected a table, [[port]]", describe(item)));
      } else {
        read_port(item);
      }
    }
  }

  void read_port(const TomlNode& table) {
    PortConfig port;
    read_table(
        table, "port", port_keys(), {"mac"},
        [&](std::string_view name) { return port_field(port, name); },
        [&](const TomlMember& m) { take_mac(m.value, port); });
    for (const std::string_view key : {"name", "device"}) {
      const TomlMember* m = table.find(key);
      if (m == nullptr) {
        errors_.add(table.where, fmt::format("a [[port]] needs \"{}\"", key));
      } else if (m->value.type == Type::text && m->value.text.empty()) {
        fail(m->value, fmt::format("port.{}", key), "expected a text that is not empty");
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
    const TomlMember* device = table.find("device");
    port.where = to_string(device == nullptr ? table.where : device->value.where);
    out_.ports.push_back(std::move(port));
  }

  void take_mac(const TomlNode& node, PortConfig& port) {
    std::array<std::uint8_t, 6> mac{};
    bool good = node.type == Type::text && node.text.size() == 17;
    for (std::size_t i = 0; good && i < 17; ++i) {
      const char c = node.text[i];
      if (i % 3 == 2) {
        good = c == ':';
        continue;
      }
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      good = digit >= 0;
      mac[i / 3] = static_cast<std::uint8_t>(mac[i / 3] * 16 + std::max(digit, 0));
    }
    if (!good) return fail(node, "port.mac", "expected six bytes as in \"02:00:00:00:00:01\"");
    if ((mac[0] & 1U) != 0) return fail(node, "port.mac", "a group address; a port has its own");
    port.mac = mac;
  }

  const TomlNode& root_;
  Diagnostics& errors_;
  Testbed& out_;
  ReadContext context_;
};

}  // namespace

Read<Testbed> read_testbed_text(std::string_view text, const std::string& source) {
  Read<Testbed> out;
  Read<TomlNode> parsed = parse_toml(text, source);
  if (!parsed.ok()) {
    out.errors = std::move(parsed.errors);
    return out;
  }
  parsed.value.where = {source, 1, 1};
  Diagnostics errors;
  if (check_schema(parsed.value, out.value.schema, errors)) {
    TestbedReader(parsed.value, errors, out.value).read();
  }
  out.errors = errors.sorted();
  return out;
}

Read<Testbed> read_testbed_file(const std::string& path) {
  Read<std::string> text = read_text_file(path, kLongestDocument);
  if (!text.ok()) return {{}, std::move(text.errors)};
  return read_testbed_text(text.value, path);
}

}  // namespace paceline::config

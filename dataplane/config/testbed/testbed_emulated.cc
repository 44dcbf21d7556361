// Testbeds of emulated hosts: the tables of a scenario without its workload, and [nic].
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "dataplane/config/scenario/document.h"
#include "dataplane/config/scenario/fabric_shape.h"
#include "dataplane/config/testbed/testbed_fields.h"
#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/config/testbed/testbed_table.h"

namespace paceline::config {

namespace {

constexpr auto kShapes = std::to_array<std::string_view>({"bonded", "separate", "multiport"});

constexpr auto kNicKeys = std::to_array<KeySpec>({
    {.path = "nic.lend_payload",
     .meaning =
         "Packets refer to the sender's registered memory, where possible, instead of a copy."},
    {.path = "nic.shape",
     .form = Form::choice,
     .choices = kShapes,
     .meaning =
         "For a NIC with several ports. \"bonded\": one device of one port, whose queue pairs "
         "outlive links. \"separate\": a device a port, `h0p0`, `h0p1`. \"multiport\": one "
         "device whose ports have an address each."},
    {.path = "nic.transmit_ring",
     .min = 0,
     .max = 1e9,
     .meaning = "The transmit ring of every host, in time on its link: a host that runs this late "
                "still fills its link. At least two full packets, at most 256 KiB."},
});

// For programs, a name has at most 32 bytes with its closing zero (dataplane/attach/protocol.h).
constexpr std::size_t kLongestNicName = 31;
constexpr std::uint32_t kMostNics = 256;

void read_nic(const TomlMember& member, NicConfig& out, ReadContext& context) {
  if (!member.value.is_table()) {
    return context.errors->add(member.value.where, "expected a table, [nic]");
  }
  read_testbed_table(
      member.value, "nic", nic_keys(), {"names"}, context,
      [&](std::string_view name) { return nic_field(out, name); },
      [&](const TomlMember& m) {
        read_texts(m, "nic", context, [&](const TomlNode& item) {
          if (!is_nic_name(item.text)) {
            fail_value(context, item, "nic.names",
                       "expected names of letters, digits, \"-\" and \"_\", at most 31");
          } else if (std::find(out.names.begin(), out.names.end(), item.text) != out.names.end()) {
            fail_value(context, item, "nic.names", "another NIC has this name");
          } else {
            out.names.push_back(item.text);
          }
        });
      });
}

// NICs without a name get one from their number; no other NIC may have that name.
void finish_names(const TomlNode& root, Testbed& out, ReadContext& context) {
  const std::uint32_t hosts = out.scenario->fabric.hosts;
  const TomlMember* nic = root.find("nic");
  const TomlMember* names =
      nic != nullptr && nic->value.is_table() ? nic->value.find("names") : nullptr;
  std::vector<std::string>& all = out.nic.names;
  if (names != nullptr && all.size() > hosts) {
    return context.errors->add(
        names->value.where,
        fmt::format("nic.names has {} names; fabric.hosts = {}", all.size(), hosts));
  }
  for (std::size_t h = all.size(); h < hosts; ++h) {
    std::string name = fmt::format("h{}", h);
    if (names != nullptr && std::find(all.begin(), all.end(), name) != all.end()) {
      return context.errors->add(
          names->value.where,
          fmt::format("nic.names: \"{}\" is what host {}, which has no name, is called", name, h));
    }
    all.push_back(std::move(name));
  }
  if (names == nullptr || out.nic.shape != "separate") return;
  for (const std::string& name : all) {
    if (name.size() + 2 <= kLongestNicName) continue;
    context.errors->add(names->value.where,
                        fmt::format("nic.names: \"{}\": with nic.shape = \"separate\" at most {}",
                                    name, kLongestNicName - 2));
  }
}

}  // namespace

bool is_nic_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestNicName &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_';
         });
}

std::span<const KeySpec> nic_keys() { return kNicKeys; }

Field nic_field(NicConfig& nic, std::string_view name) {
  if (name == "lend_payload") return &nic.lend_payload;
  if (name == "shape") return &nic.shape;
  return &nic.transmit_ring;
}

void read_emulated(const TomlNode& root, Testbed& out, ReadContext& context) {
  context.has_workload = false;
  Scenario& scenario = out.scenario.emplace();
  std::vector<std::string_view> elsewhere{"schema", "cc", "nic", "service"};
  const auto refuse = [&](std::initializer_list<std::string_view> keys, std::string_view why) {
    for (const std::string_view key : keys) {
      const TomlMember* m = root.find(key);
      if (m == nullptr) continue;
      context.errors->add(m->where, fmt::format("{} {}", key, why));
      elsewhere.push_back(key);
    }
  };
  refuse({"workload", "duration", "max_hops"},
         "belongs to a scenario; on a testbed programs bring the traffic");
  refuse({"eal", "port", "worker"},
         "is of a testbed of this machine's ports; with [fabric] all hosts are emulated");
  // The error of the scenario reader about an unknown key must also name the keys of a testbed.
  const std::string_view tables[] = {"fabric", "transport", "cc",   "event",
                                     "nic",    "service",   "seed", "name"};
  for (const TomlMember& m : root.members) {
    const bool known = std::find(std::begin(tables), std::end(tables), m.key) != std::end(tables) ||
                       std::find(elsewhere.begin(), elsewhere.end(), m.key) != elsewhere.end();
    if (known) continue;
    report_unknown_key(m, "", tables, context);
    elsewhere.push_back(m.key);
  }
  GivenKeys given;
  scenario.name = out.name;
  read_scenario_table(root, elsewhere, scenario, given, context);
  out.name = scenario.name;
  if (const TomlMember* m = root.find("nic")) read_nic(*m, out.nic, context);
  if (const TomlMember* m = root.find("service")) read_service(m->value, out.service, context);
  if (const TomlMember* m = root.find("cc")) {
    if (m->value.is_table()) {
      read_cc_table(m->value, "cc", {}, scenario.cc, context);
    } else {
      context.errors->add(m->where, "expected a table, [cc]");
    }
  }
  imply(scenario, given);
  check_scenario(scenario, given, root.where, context);
  if (const TomlMember* m = root.find("cc"); m != nullptr && m->value.is_table()) {
    check_cc_needs(scenario, scenario.cc, m->value, "cc", context);
  }
  const auto where = [&](std::string_view key) { return given.place({key}, root.where); };
  if (scenario.fabric.topology == "file") {
    context.errors->add(where("fabric.topology_file"),
                        "fabric.topology = \"file\" is for scenarios; allowed here is \"star\", "
                        "\"leaf_spine\", \"fat_tree\" or \"dumbbell\"");
    return;
  }
  if (const TomlMember* nic = root.find("nic"); nic != nullptr && scenario.fabric.ports == 1) {
    const TomlMember* shape = nic->value.find("shape");
    if (shape != nullptr) {
      context.errors->add(shape->value.where,
                          "nic.shape is for NICs of several ports; allowed with fabric.ports of 2 "
                          "and more");
    }
  }
  const bool separate = out.nic.shape == "separate";
  const std::uint64_t devices = separate ? scenario.fabric.endpoints() : scenario.fabric.hosts;
  if (devices > kMostNics) {
    context.errors->add(where("fabric.hosts"),
                        fmt::format("{} {}: a testbed has at most {}", devices,
                                    separate ? "ports, each a device" : "hosts", kMostNics));
    return;
  }
  if (out.nic.shape == "multiport") {
    const std::optional<unsigned> prefix = subnet_prefix(scenario.fabric);
    const int most = 16 - static_cast<int>(std::bit_width(scenario.fabric.ports - 1));
    if (prefix && static_cast<int>(*prefix) > most) {
      context.errors->add(
          where("fabric.subnet"),
          fmt::format("fabric.subnet = \"{}\": with nic.shape = \"multiport\" each of "
                      "the {} ports needs 65536 addresses; allowed is a prefix of at "
                      "most {}",
                      scenario.fabric.subnet, scenario.fabric.ports, most));
      return;
    }
  }
  if (scenario.transport.calibration) {
    context.errors->add(where("transport.calibration"),
                        "transport.calibration is for scenarios; programs need a path MTU of RoCE");
  }
  finish_names(root, out, context);
}

}  // namespace paceline::config

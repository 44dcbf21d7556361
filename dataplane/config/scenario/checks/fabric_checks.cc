// Rules between the keys of the fabric.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "dataplane/config/scenario/checks/key_checks.h"
#include "dataplane/config/scenario/checks/scenario_checks.h"
#include "dataplane/config/scenario/fabric_shape.h"
#include "dataplane/config/scenario/link_group.h"
#include "dataplane/config/toml/quantity.h"

namespace paceline::config {

namespace {

class FabricChecks : private KeyChecks {
 public:
  using KeyChecks::KeyChecks;

  void run() {
    const FabricConfig& f = s_.fabric;
    check_subnet();
    require(
        f.ecn.kmin_bytes <= f.ecn.kmax_bytes, {"fabric.ecn.kmin", "fabric.ecn.kmax"},
        fmt::format("fabric.ecn.kmin = {} is above fabric.ecn.kmax = {}; allowed is kmin <= kmax",
                    format_bytes(f.ecn.kmin_bytes), format_bytes(f.ecn.kmax_bytes)));
    if (given_.given("fabric.topology") && given_.given("fabric.topology_file")) {
      require(f.topology == "file", {"fabric.topology", "fabric.topology_file"},
              fmt::format("fabric.topology = \"{}\" contradicts fabric.topology_file; allowed with "
                          "it is \"file\"",
                          f.topology));
    }
    require(f.topology != "file" || !f.topology_file.empty(),
            {"fabric.topology", "fabric.topology_file"},
            "fabric.topology = \"file\" needs fabric.topology_file");
    check_shape();
    check_switches();
    check_flow_control();
    check_events();
    require(f.fixed_overhead_bytes == 0 || s_.transport.calibration,
            {"fabric.fixed_overhead_bytes", "transport.calibration"},
            "fabric.fixed_overhead_bytes is for calibration; allowed with transport.calibration = "
            "true");
  }

 private:
  // Regular topologies.
  void check_shape() {
    const FabricConfig& f = s_.fabric;
    if (!hosts_known() || !given_.usable({"fabric.topology"})) return;
    if (f.topology == "fat_tree") {
      require(f.k % 2 == 0, {"fabric.k"},
              fmt::format("fabric.k = {}: expected an even number of ports", f.k));
      if (given_.given("fabric.k")) {
        for (const std::string_view key : {"fabric.pods", "fabric.leaves", "fabric.spines",
                                           "fabric.cores", "fabric.hosts_per_leaf"}) {
          require(!given_.given(key), {key},
                  fmt::format("{} contradicts fabric.k, which says it all; give one of them", key));
        }
      }
    }
    require(f.topology != "dumbbell" || f.hosts % 2 == 0, {"fabric.hosts"},
            fmt::format("fabric.hosts = {}: a dumbbell has an even number, half on either side",
                        f.hosts));
    shape_good_ = check_tiers();
    if (shape_good_ && f.topology != "star" && f.topology != "dumbbell") {
      const std::uint64_t hosts = shape_of(f).endpoints() / f.ports;
      shape_good_ = hosts >= 2 && hosts <= kMostHosts;
      require(shape_good_,
              {"fabric.hosts_per_leaf", "fabric.leaves", "fabric.pods", "fabric.k",
               "fabric.servers", "fabric.nics"},
              fmt::format("a {} of {} hosts: allowed is 2 .. {}", f.topology, hosts, kMostHosts));
    }
    check_nics();
    check_oversubscription();
  }

  // Switches above the hosts: whether there is a shape.
  bool check_tiers() {
    const FabricConfig& f = s_.fabric;
    if (f.topology == "leaf_spine" || (f.topology == "fat_tree" && f.k == 0)) {
      require(f.spines != 0, {"fabric.spines"},
              "fabric.spines = 0: allowed is [1 .. 4096]; 0 with fabric.topology = \"rail\"");
      if (f.spines == 0 || f.topology == "leaf_spine") return f.spines != 0;
      require(f.cores != 0, {"fabric.cores"},
              "fabric.cores = 0: allowed is [1 .. 65536]; 0 with fabric.topology = \"rail\"");
      return f.cores != 0 && check_cores();
    }
    if (f.topology != "rail") return true;
    const bool whole = f.servers % f.hosts_per_leaf == 0;
    require(whole, {"fabric.servers", "fabric.hosts_per_leaf"},
            fmt::format("fabric.servers = {}: expected a multiple of fabric.hosts_per_leaf = {}, "
                        "for each leaf has that many servers' NICs of one rail",
                        f.servers, f.hosts_per_leaf));
    if (!whole) return false;
    const std::uint32_t leaves = f.servers / f.hosts_per_leaf;
    require(f.spines != 0 || leaves == 1, {"fabric.spines", "fabric.servers"},
            fmt::format("fabric.spines = 0: the {} leaves of a rail would not reach each other; "
                        "allowed is 0 with one leaf, fabric.servers = fabric.hosts_per_leaf",
                        leaves));
    require(f.spines != 0 || f.cores == 0, {"fabric.cores", "fabric.spines"},
            fmt::format("fabric.cores = {}: cores are linked to spines; allowed with fabric.spines "
                        "= 0 is 0",
                        f.cores));
    return f.spines == 0 ? leaves == 1 && f.cores == 0 : check_cores();
  }

  bool check_cores() {
    const FabricConfig& f = s_.fabric;
    require(f.cores % f.spines == 0, {"fabric.cores", "fabric.spines"},
            fmt::format("fabric.cores = {}: expected a multiple of fabric.spines = {}", f.cores,
                        f.spines));
    return f.cores % f.spines == 0;
  }

  // Servers of several NICs, NICs of several ports.
  void check_nics() {
    const FabricConfig& f = s_.fabric;
    require(!shape_good_ || f.hosts % f.nics == 0, {"fabric.nics", "fabric.hosts"},
            fmt::format("fabric.nics = {}: the number of hosts, {}, is not a multiple of it",
                        f.nics, f.hosts));
    require(f.planes == "own" || f.topology == "leaf_spine", {"fabric.planes", "fabric.topology"},
            fmt::format("fabric.planes = \"{}\" with fabric.topology = \"{}\"; allowed with it is "
                        "\"own\"",
                        f.planes, f.topology));
    require(!shape_good_ || f.endpoints() <= kMostEndpoints, {"fabric.ports", "fabric.hosts"},
            fmt::format("{} hosts of {} ports: allowed is {} ports in all", f.hosts, f.ports,
                        kMostEndpoints));
  }

  void check_oversubscription() {
    const FabricConfig& f = s_.fabric;
    const FabricShape shape = shape_of(f);
    const bool tree = shape.cores != 0;
    if (!given_.given("fabric.oversubscription") || !shape_good_ ||
        (shape.spines == 0 && f.topology != "dumbbell")) {
      return;
    }
    const std::string_view other = tree ? "fabric.core_rate" : "fabric.uplink_rate";
    require(!given_.given(other), {"fabric.oversubscription", other},
            fmt::format("fabric.oversubscription and {} say the same; give one of them", other));
    const Rate rate = tree ? core_rate(f) : uplink_rate(f);
    require(rate >= rate_from_mbps(1) && rate <= rate_from_gbps(3200), {"fabric.oversubscription"},
            fmt::format("fabric.oversubscription = {}: makes links of {}; allowed is [1Mb/s .. "
                        "3200Gb/s]",
                        f.oversubscription, format_rate(rate)));
  }

  void check_switches() {
    const FabricConfig& f = s_.fabric;
    require(f.class_weights.empty() || f.class_weights.size() == 8, {"fabric.class_weights"},
            fmt::format("fabric.class_weights has {} entries; expected 8, for classes 0 to 7",
                        f.class_weights.size()));
    require(f.class_weights.size() != 8 || f.class_weights[7] == 0, {"fabric.class_weights"},
            "fabric.class_weights: class 7 carries ACKs and control and stays strict; its weight "
            "is 0");
    const GivenKeys::Entry* const cnp_class = given_.find("fabric.cnp_class");
    require(!s_.transport.cnp_in_ack || cnp_class == nullptr || cnp_class->inherited,
            {"fabric.cnp_class"},
            "fabric.cnp_class does nothing with transport.cnp_in_ack = true; it is for CNPs that "
            "are packets of their own");
    check_notices();
  }

  void check_notices() {
    const FabricConfig& f = s_.fabric;
    for (const std::string_view key :
         {"fabric.notice.set_point", "fabric.notice.weight", "fabric.notice.sample"}) {
      const GivenKeys::Entry* const entry = given_.find(key);
      require(f.notice.enabled || entry == nullptr || entry->inherited, {key},
              fmt::format("{} does nothing with fabric.notice.enabled = false", key));
    }
    std::uint64_t kmin = f.ecn.kmin_bytes;
    for (const EcnAtRate& own : f.ecn.at_rates) kmin = std::min(kmin, own.kmin_bytes);
    require(!f.notice.enabled || f.notice.set_point_bytes != 0 || kmin != 0,
            {"fabric.notice.enabled", "fabric.ecn.kmin"},
            "fabric.notice.set_point = 0 is fabric.ecn.kmin, which is 0 B; allowed is any queue "
            "that has a length, such as \"400kB\"");
  }

  void check_flow_control() {
    const FabricConfig& f = s_.fabric;
    require(
        (f.flow_control == "pfc") == f.pfc.enabled, {"fabric.flow_control", "fabric.pfc.enabled"},
        fmt::format("fabric.flow_control = \"{}\" contradicts fabric.pfc.enabled = {}; give one "
                    "of them",
                    f.flow_control, f.pfc.enabled));
    if (f.flow_control != "credit") {
      for (const std::string_view key : {"fabric.credit.buffer", "fabric.credit.update"}) {
        const GivenKeys::Entry* entry = given_.find(key);
        require(entry == nullptr || entry->inherited, {key},
                fmt::format("{} does nothing with fabric.flow_control = \"{}\"; it is for "
                            "\"credit\"",
                            key, f.flow_control));
      }
      return;
    }
    constexpr std::string_view kPauses[] = {"fabric.pfc.headroom", "fabric.pfc.xon_offset",
                                            "fabric.pfc.reserve"};
    for (const std::string_view key : kPauses) {
      const GivenKeys::Entry* entry = given_.find(key);
      require(entry == nullptr || entry->inherited, {key},
              fmt::format("{} does nothing with fabric.flow_control = \"credit\"; it is for "
                          "\"pfc\"",
                          key));
    }
    for (const auto& [key, to] :
         {std::pair{"fabric.ack_class", f.ack_class}, std::pair{"fabric.cnp_class", f.cnp_class}}) {
      require(to != kDefaultDataClass, {key, "fabric.flow_control"},
              fmt::format("{} = {}: fabric.flow_control = \"credit\" rules class {}, and hosts "
                          "send these packets without credits; allowed is any other class",
                          key, to, to));
    }
    bool copies = f.duplicate > 0;
    for (const EventConfig& event : s_.events) copies = copies || event.action == "duplicate";
    require(!copies, {"fabric.duplicate", "fabric.flow_control"},
            "fabric.flow_control = \"credit\": a link that sends a packet twice has no credits for "
            "the second; allowed is fabric.duplicate = 0 and no event \"duplicate\"");
  }

  // With a topology file, the reader of that file looks the links up.
  void check_events() {
    if (!hosts_known() || !given_.usable({"fabric.topology"}) || !shape_good_) return;
    for (const EventConfig& event : s_.events) {
      const FoundLinks found = find_links(s_.fabric, event.link);
      if (found.error.empty()) continue;
      context_.errors->add({event.where, 0, 0},
                           fmt::format("event.link = \"{}\": {}", event.link, found.error));
    }
  }

  // End e of the fabric gets address e + 1 of the network.
  void check_subnet() {
    const std::string& text = s_.fabric.subnet;
    const std::optional<unsigned> prefix = subnet_prefix(s_.fabric);
    require(prefix.has_value(), {"fabric.subnet"},
            fmt::format("fabric.subnet = \"{}\": expected an IPv4 network such as \"10.0.0.0/8\", "
                        "prefix 8 to 30",
                        text));
    if (prefix && hosts_known()) {
      const std::uint64_t room = (std::uint64_t{1} << (32 - *prefix)) - 2;
      require(s_.fabric.endpoints() <= room, {"fabric.subnet", "fabric.hosts"},
              fmt::format("fabric.subnet = \"{}\" has addresses for {} hosts, not for {}", text,
                          room, s_.fabric.endpoints()));
    }
  }

  bool shape_good_ = true;
};

}  // namespace

void check_fabric(const Scenario& scenario, const GivenKeys& given, const Where& start,
                  ReadContext& context) {
  FabricChecks(scenario, given, start, context).run();
}

}  // namespace paceline::config

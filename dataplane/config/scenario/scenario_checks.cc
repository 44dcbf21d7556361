// Rules between the keys of a scenario. Each is reported at the key that a person would change.

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <optional>
#include <utility>

#include "cc/registry.h"
#include "dataplane/config/scenario/fabric_shape.h"
#include "dataplane/config/scenario/link_group.h"
#include "dataplane/config/scenario/table_reader.h"
#include "dataplane/config/toml/quantity.h"

namespace paceline::config {

namespace {

class Checker {
 public:
  Checker(const Scenario& s, const GivenKeys& given, const Where& start, ReadContext& context)
      : s_(s), given_(given), start_(start), context_(context) {}

  void run() {
    check_fabric();
    check_transport();
    check_servers();
    if (context_.has_workload) check_workload();
    check_unused();
  }

 private:
  using Paths = std::initializer_list<std::string_view>;

  // Reports at the first of `paths` that was given, unless one of them already failed to read.
  void require(bool holds, Paths paths, const std::string& message) {
    if (holds || !given_.usable(paths)) return;
    context_.errors->add(given_.place(paths, start_), message);
  }

  void check_fabric() {
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
            "fabric.flow_control = \"credit\": links that send a packet twice would need credits "
            "that nobody gave; allowed is fabric.duplicate = 0 and no event \"duplicate\"");
  }

  // With a topology file, whoever reads that file looks the links up.
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
    const std::optional<unsigned> prefix = ipv4_prefix(text);
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

  // The prefix length of "a.b.c.d/n", or nothing.
  static std::optional<unsigned> ipv4_prefix(std::string_view text) {
    std::array<unsigned, 5> parts{};
    constexpr std::string_view kSeparators = "..../";
    const char* at = text.data();
    const char* end = at + text.size();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (i > 0 && (at == end || *at++ != kSeparators[i])) return std::nullopt;
      const auto [stop, code] = std::from_chars(at, end, parts[i]);
      if (code != std::errc{} || parts[i] > (i < 4 ? 255U : 30U)) return std::nullopt;
      at = stop;
    }
    if (at != end || parts[4] < 8) return std::nullopt;
    const std::uint32_t address = parts[0] << 24 | parts[1] << 16 | parts[2] << 8 | parts[3];
    const std::uint32_t host_bits = ~(0xFFFF'FFFFU << (32 - parts[4]));
    return (address & host_bits) == 0 ? std::optional(parts[4]) : std::nullopt;
  }

  void check_transport() {
    const TransportConfig& t = s_.transport;
    require(
        t.calibration || (std::has_single_bit(t.payload_bytes) && t.payload_bytes >= 256),
        {"transport.payload_bytes", "transport.calibration"},
        fmt::format("transport.payload_bytes = {}: allowed is 256, 512, 1024, 2048 or 4096 (any "
                    "value in [64 .. 4096] with transport.calibration = true)",
                    t.payload_bytes));
    require(t.multipath == "none" || t.reliability == "selective",
            {"transport.multipath", "transport.reliability"},
            fmt::format("transport.multipath = \"{}\" reorders packets; allowed with "
                        "transport.reliability = \"selective\"",
                        t.multipath));
    const bool several = s_.fabric.ports > 1;
    require(
        t.source_ports == "hash" ||
            (t.multipath == "none" && s_.fabric.load_balance == "ecmp" && !several),
        {"transport.source_ports", "transport.multipath", "fabric.load_balance", "fabric.ports"},
        "transport.source_ports = \"planned\" needs one path a connection: "
        "transport.multipath = \"none\", fabric.load_balance = \"ecmp\", fabric.ports = 1");
    require(
        several || !given_.given("transport.planes"), {"transport.planes", "fabric.ports"},
        "transport.planes is for NICs of several ports; allowed with fabric.ports of 2 and more");
    require(!several || t.planes != "spray" || t.reliability == "selective",
            {"transport.planes", "transport.reliability", "fabric.ports"},
            "transport.planes = \"spray\" reorders packets; allowed with transport.reliability = "
            "\"selective\", or use \"hash\" or \"pinned\"");
    require(!several || t.planes == "spray" || t.multipath == "none",
            {"transport.planes", "transport.multipath"},
            fmt::format("transport.planes = \"{}\" keeps a connection to one port; allowed with "
                        "transport.multipath = \"none\"",
                        t.planes));
    require(std::has_single_bit(t.window_packets), {"transport.window_packets"},
            fmt::format("transport.window_packets = {}: allowed is a power of two in [64 .. 4096]",
                        t.window_packets));
    require(t.reliability != "selective" || !t.cnp_in_ack,
            {"transport.reliability", "transport.cnp_in_ack"},
            "transport.cnp_in_ack marks plain ACKs; allowed with transport.reliability = "
            "\"go_back_n\"");
    require(!t.cnp_in_ack || t.calibration, {"transport.cnp_in_ack", "transport.calibration"},
            "transport.cnp_in_ack is for calibration; allowed with transport.calibration = true");
    if (hosts_known()) {
      for (const std::uint32_t host : t.foreign_hosts) {
        require(host < s_.fabric.hosts, {"transport.foreign_hosts", "fabric.hosts"},
                fmt::format("transport.foreign_hosts names host {}: allowed is 0 .. {}", host,
                            s_.fabric.hosts - 1));
      }
    }
  }

  // With a topology file the number of hosts is known only to whoever reads that file.
  bool hosts_known() const { return s_.fabric.topology != "file"; }

  // An error at each of `keys` that was given for this scenario.
  void refuse(Paths keys, std::string_view does_nothing_with) {
    for (const std::string_view key : keys) {
      const GivenKeys::Entry* const entry = given_.find(key);
      if (entry == nullptr || entry->inherited) continue;
      context_.errors->add(entry->where,
                           fmt::format("{} does nothing with {}", key, does_nothing_with));
    }
  }

  void check_servers() {
    if (hosts_known() && s_.fabric.nics == 1 && given_.usable({"fabric.nics"})) {
      refuse({"fabric.nvlink_rate", "fabric.nvlink_latency", "workload.pxn", "workload.per_rail"},
             "fabric.nics = 1; it is for servers of several NICs");
    }
    const WorkloadConfig& w = s_.workload;
    if (w.per_rail) {
      refuse({"workload.placement", "workload.placement_file", "workload.pxn"},
             "workload.per_rail = true: the ranks of a rail are its servers");
    }
    if (given_.given("workload.placement_file")) {
      require(w.placement == "file", {"workload.placement", "workload.placement_file"},
              fmt::format("workload.placement = \"{}\" contradicts workload.placement_file; "
                          "allowed with it is \"file\"",
                          w.placement));
    }
    require(w.placement != "file" || !w.placement_file.empty(),
            {"workload.placement", "workload.placement_file"},
            "workload.placement = \"file\" needs workload.placement_file");
  }

  void check_workload() {
    const WorkloadConfig& w = s_.workload;
    if (!given_.usable({"workload.kind"})) return;
    const std::uint32_t ranks = w.per_rail ? s_.fabric.hosts / s_.fabric.nics : s_.fabric.hosts;
    if (w.kind == "incast" && hosts_known()) {
      require(w.receiver < ranks, {"workload.receiver", "fabric.hosts"},
              fmt::format("workload.receiver = {}: no such host, allowed is 0 .. {}", w.receiver,
                          ranks - 1));
      require_senders(ranks);
    } else if (w.kind == "permutation" && hosts_known()) {
      require(w.shift < ranks, {"workload.shift", "fabric.hosts"},
              fmt::format("workload.shift = {}: allowed is 0 .. {}", w.shift, ranks - 1));
    } else if (w.kind == "open_loop") {
      if (given_.given("workload.cdf") && given_.given("workload.cdf_file")) {
        require(
            w.cdf == "file", {"workload.cdf", "workload.cdf_file"},
            fmt::format("workload.cdf = \"{}\" contradicts workload.cdf_file; allowed with it is "
                        "\"file\"",
                        w.cdf));
      }
      require(w.cdf != "file" || !w.cdf_file.empty(), {"workload.cdf", "workload.cdf_file"},
              "workload.cdf = \"file\" needs workload.cdf_file");
      check_incasts(ranks);
    } else if (w.kind == "ring_all_reduce") {
      const bool both = w.all_reduce_bytes != 0 && !w.model.empty();
      const bool none = w.all_reduce_bytes == 0 && w.model.empty();
      require(!both && !none, {"workload.all_reduce_bytes", "workload.model", "workload.kind"},
              fmt::format(
                  "ring_all_reduce takes either workload.all_reduce_bytes or workload.model; {}",
                  both ? "both are given" : "neither is"));
    } else if (w.kind == "flows") {
      require(!w.flows_file.empty(), {"workload.flows_file", "workload.kind"},
              "workload.kind = \"flows\" needs workload.flows_file");
    } else if (w.kind == "htsim") {
      require(!w.matrix_file.empty(), {"workload.matrix_file", "workload.kind"},
              "workload.kind = \"htsim\" needs workload.matrix_file");
    } else if (w.kind == "job") {
      check_job(ranks);
    }
  }

  void check_job(std::uint32_t ranks) {
    const JobConfig& job = s_.workload.job;
    const bool collective = job.format == "collective";
    const bool model = job.format == "model";
    if (model) {
      refuse({"workload.job.file"}, "workload.job.format = \"model\"");
    } else {
      require(collective == job.file.empty(), {"workload.job.file", "workload.job.format"},
              collective ? "workload.job.file needs workload.job.format, which says what it is"
                         : fmt::format("workload.job.format = \"{}\" needs workload.job.file",
                                       job.format));
    }
    const bool inference = job.format == "inference";
    const std::string format = fmt::format("workload.job.format = \"{}\"", job.format);
    for (const KeySpec& key : scenario_keys()) {
      if ((!model && key.table() == "workload.job.model") ||
          (!inference && key.table() == "workload.job.inference")) {
        refuse({key.path}, format);
      }
    }
    if (!collective) {
      refuse({"workload.job.operation", "workload.job.bytes", "workload.job.compute"}, format);
    }
    check_skew(format);
    if (inference || job.format == "goal" || job.format == "chakra") {
      refuse({"workload.job.iterations"}, format);
    }
    // The scheduler plans with tokens_per_second.
    if (inference) refuse({"workload.job.compute_scale"}, format);
    require(job.groups_file.empty() || job.format == "chakra", {"workload.job.groups_file"},
            "workload.job.groups_file is of workload.job.format = \"chakra\"");
    require(std::has_single_bit(job.aggregation) || job.aggregation == 0,
            {"workload.job.aggregation"},
            fmt::format("workload.job.aggregation = {}: allowed are 0 and powers of two",
                        job.aggregation));
    if (!hosts_known()) return;
    const BackgroundConfig& background = s_.workload.background;
    if (background.kind != "none") {
      const std::string_view nics = "workload.background.storage_nics";
      require(background.storage_nics + 2 <= ranks, {nics, "fabric.hosts"},
              fmt::format("{} = {}: of {} NICs at least two must be left for ranks", nics,
                          background.storage_nics, ranks));
      ranks -= std::min(ranks - 1, background.storage_nics);
    }
    require(job.straggler < ranks, {"workload.job.straggler", "fabric.hosts"},
            fmt::format("workload.job.straggler = {}: no such rank, allowed is 0 .. {}",
                        job.straggler, ranks - 1));
  }

  // It is for all-to-alls, of a collective or of a model's experts.
  void check_skew(const std::string& format) {
    const JobConfig& job = s_.workload.job;
    if (job.format == "collective") {
      if (job.operation == "all_to_all") return;
      refuse({"workload.job.skew"},
             fmt::format("workload.job.operation = \"{}\"; it is for all_to_all", job.operation));
    } else if (job.format == "model") {
      if (job.model.ep > 1) return;
      refuse({"workload.job.skew"}, "workload.job.model.ep = 1; it is for 2 or more");
    } else {
      refuse({"workload.job.skew"}, format);
    }
  }

  void require_senders(std::uint32_t ranks) {
    require(s_.workload.fan_in <= ranks - 1, {"workload.fan_in", "fabric.hosts"},
            fmt::format(
                "workload.fan_in = {}: {} = {} leaves at most {} senders", s_.workload.fan_in,
                s_.workload.per_rail ? "the number of servers" : "fabric.hosts", ranks, ranks - 1));
  }

  // Those on top of an open loop.
  void check_incasts(std::uint32_t ranks) {
    const WorkloadConfig& w = s_.workload;
    if (!given_.usable({"workload.incast_load"})) return;
    for (const std::string_view key : {"workload.fan_in", "workload.message_bytes"}) {
      const GivenKeys::Entry* entry = given_.find(key);
      if (w.incast_load > 0 || entry == nullptr || entry->inherited) continue;
      context_.errors->add(entry->where,
                           fmt::format("{} does nothing with workload.kind = \"open_loop\" without "
                                       "workload.incast_load",
                                       key));
    }
    if (w.incast_load == 0 || !hosts_known()) return;
    require_senders(ranks);
  }

  // A key of another generator or topology does nothing, and its author does not know. (Inherited:
  // in a table shared by several scenarios it may serve another one.)
  void check_unused() {
    for (const KeySpec& key : scenario_keys()) {
      const GivenKeys::Entry* entry = given_.find(key.path);
      if (key.used_by.empty() || entry == nullptr || entry->inherited) continue;
      const bool fabric = key.path.starts_with("fabric.");
      const std::string_view chooser = fabric ? "fabric.topology" : "workload.kind";
      if (!given_.usable({chooser})) continue;
      const std::string& chosen = fabric ? s_.fabric.topology : s_.workload.kind;
      const std::string padded = fmt::format(" {} ", key.used_by);
      if (padded.find(fmt::format(" {} ", chosen)) != std::string::npos) continue;
      context_.errors->add(entry->where,
                           fmt::format("{} does nothing with {} = \"{}\"; it is for {}", key.path,
                                       chooser, chosen, key.used_by));
    }
  }

  bool shape_good_ = true;
  const Scenario& s_;
  const GivenKeys& given_;
  const Where& start_;
  ReadContext& context_;
};

}  // namespace

void check_scenario(const Scenario& scenario, const GivenKeys& given, const Where& start,
                    ReadContext& context) {
  Checker(scenario, given, start, context).run();
}

void check_cc_needs(const Scenario& scenario, const CcConfig& cc, const TomlNode& node,
                    std::string_view table, ReadContext& context) {
  const cc::AlgorithmInfo* const info = cc::find(cc.algorithm);
  if (info == nullptr || !cc::needs_telemetry(*info)) return;
  if (has_telemetry(scenario)) return;
  const TomlMember* const given = node.find("algorithm");
  context.errors->add(
      given != nullptr ? given->value.where : node.where,
      fmt::format("{}.algorithm = \"{}\" needs {}; here it is {}, \"{}\", \"{}\"", table,
                  cc.algorithm, cc::kTelemetryNeeds, scenario.fabric.telemetry,
                  scenario.transport.reliability, scenario.transport.peers));
}

}  // namespace paceline::config

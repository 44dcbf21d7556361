// Rules between the keys of a scenario. Each is reported at the key that a person would change.

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <optional>

#include "dataplane/config/quantity.h"
#include "dataplane/config/table_reader.h"

namespace paceline::config {

namespace {

class Checker {
 public:
  Checker(const Scenario& s, const GivenKeys& given, const Where& start, ReadContext& context)
      : s_(s), given_(given), start_(start), context_(context) {}

  void run() {
    check_fabric();
    check_transport();
    check_workload();
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
    require(f.fixed_overhead_bytes == 0 || s_.transport.calibration,
            {"fabric.fixed_overhead_bytes", "transport.calibration"},
            "fabric.fixed_overhead_bytes is for calibration; allowed with transport.calibration = "
            "true");
  }

  // Host h gets address h + 1 of the network.
  void check_subnet() {
    const std::string& text = s_.fabric.subnet;
    const std::optional<unsigned> prefix = ipv4_prefix(text);
    require(prefix.has_value(), {"fabric.subnet"},
            fmt::format("fabric.subnet = \"{}\": expected an IPv4 network such as \"10.0.0.0/8\", "
                        "prefix 8 to 30",
                        text));
    if (prefix && hosts_known()) {
      const std::uint64_t room = (std::uint64_t{1} << (32 - *prefix)) - 2;
      require(s_.fabric.hosts <= room, {"fabric.subnet", "fabric.hosts"},
              fmt::format("fabric.subnet = \"{}\" has addresses for {} hosts, not for {}", text,
                          room, s_.fabric.hosts));
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

  void check_workload() {
    const WorkloadConfig& w = s_.workload;
    if (!given_.usable({"workload.kind"})) return;
    if (w.kind == "incast" && hosts_known()) {
      const std::uint32_t hosts = s_.fabric.hosts;
      require(w.receiver < hosts, {"workload.receiver", "fabric.hosts"},
              fmt::format("workload.receiver = {}: no such host, allowed is 0 .. {}", w.receiver,
                          hosts - 1));
      require(w.fan_in <= hosts - 1, {"workload.fan_in", "fabric.hosts"},
              fmt::format("workload.fan_in = {}: fabric.hosts = {} leaves at most {} senders",
                          w.fan_in, hosts, hosts - 1));
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
    }
  }

  // A key of another generator does nothing, and its author does not know. (Inherited: in a table
  // shared by several scenarios it may serve another one.)
  void check_unused() {
    if (!given_.usable({"workload.kind"})) return;
    for (const KeySpec& key : scenario_keys()) {
      const GivenKeys::Entry* entry = given_.find(key.path);
      if (key.used_by.empty() || entry == nullptr || entry->inherited) continue;
      const std::string padded = fmt::format(" {} ", key.used_by);
      if (padded.find(fmt::format(" {} ", s_.workload.kind)) != std::string::npos) continue;
      context_.errors->add(entry->where,
                           fmt::format("{} does nothing with workload.kind = \"{}\"; it is for {}",
                                       key.path, s_.workload.kind, key.used_by));
    }
  }

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

}  // namespace paceline::config

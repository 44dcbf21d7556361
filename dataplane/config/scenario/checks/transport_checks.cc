// Rules between the keys of the transport, and between these and the fabric's.
#include <fmt/format.h>

#include <bit>

#include "dataplane/config/scenario/checks/key_checks.h"
#include "dataplane/config/scenario/checks/scenario_checks.h"

namespace paceline::config {

namespace {

class TransportChecks : private KeyChecks {
 public:
  using KeyChecks::KeyChecks;

  void run() {
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
        t.source_ports == "hash" || has_one_path(s_),
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
};

}  // namespace

void check_transport(const Scenario& scenario, const GivenKeys& given, const Where& start,
                     ReadContext& context) {
  TransportChecks(scenario, given, start, context).run();
}

}  // namespace paceline::config

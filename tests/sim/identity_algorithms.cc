// Every algorithm under every repair that it may have, over a fabric that loses, marks, pauses,
// doubles, damages and delays.
#include "tests/sim/identity.h"

namespace paceline::simtest::identity {

std::string cc_line(const std::string& algorithm, const std::string& profile,
                    const std::string& params) {
  std::string line = "cc = { algorithm = \"" + algorithm + "\"";
  if (!profile.empty()) line += ", profile = \"" + profile + "\"";
  if (!params.empty()) line += ", params = { " + params + " }";
  return line + " }\n";
}

std::string transport_line(const std::string& more) {
  return "transport = { payload_bytes = 1024, retransmit_timeout = \"100us\"" +
         (more.empty() ? "" : ", " + more) + " }\n";
}

std::vector<World> algorithm_worlds() {
  const std::string fabric =
      "[fabric]\ntopology = \"leaf_spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n"
      "oversubscription = 2\nloss = 3e-4\ncorrupt = 3e-4\nduplicate = 1e-3\nreorder = 1e-3\n"
      "reorder_delay = \"3us\"\nbuffer = \"400kB\"\necn = { kmin = \"20kB\", kmax = \"80kB\" }\n"
      "pfc = { headroom = \"40kB\" }\n";
  const std::string work =
      "[workload]\nkind = \"open_loop\"\ncdf = \"fb_hadoop\"\nload = 0.5\nwindow = \"60us\"\n"
      "incast_load = 0.1\nfan_in = 5\nmessage_bytes = \"40kB\"\n";
  struct Repair {
    const char* name;
    const char* transport;
    bool selective;
  };
  const Repair repairs[] = {
      {"go_back_n", "ack_every = 4", false},
      {"selective", "ack_every = 2, reliability = \"selective\"", true},
      {"multipath", "reliability = \"selective\", multipath = \"packet\", paths = 8", true},
  };
  std::vector<World> out;
  std::uint64_t seed = 100;
  for (const char* const algorithm :
       {"fixed", "dcqcn", "cadence", "swift", "timely", "dctcp", "theta-powertcp", "nscc", "hpcc",
        "powertcp", "eqds", "sird", "homa", "switch-notified"}) {
    const bool telemetry = std::string(algorithm) == "hpcc" || std::string(algorithm) == "powertcp";
    const bool notices = std::string(algorithm) == "switch-notified";
    for (const Repair& repair : repairs) {
      ++seed;
      if (telemetry && !repair.selective) continue;  // telemetry comes back in XACKs
      World w;
      w.name = std::string("algorithm/") + algorithm + "_" + repair.name;
      w.toml = "seed = " + std::to_string(seed) + "\n" + cc_line(algorithm) +
               transport_line(repair.transport) + fabric + (telemetry ? "int = true\n" : "") +
               (notices ? "notice = { enabled = true }\n" : "") + work;
      out.push_back(w);
    }
  }
  return out;
}

}  // namespace paceline::simtest::identity

// What a transport is told: how often it acknowledges, how it echoes marks, whom it speaks the
// control protocol with, how long its windows are; and the profiles of algorithms that change what
// it does.
#include <tuple>

#include "tests/sim/identity.h"

namespace paceline::simtest::identity {

std::vector<World> transport_worlds() {
  const std::string selective = "reliability = \"selective\"";
  const std::string star =
      "[fabric]\nhosts = 8\nloss = 5e-4\necn = { kmin = \"20kB\", kmax = \"80kB\" }\n";
  const std::string work =
      "[workload]\nkind = \"open_loop\"\ncdf = \"fb_hadoop\"\nload = 0.5\nwindow = \"150us\"\n"
      "incast_load = 0.2\nfan_in = 6\nmessage_bytes = \"40kB\"\n";
  const std::string priorities = "cutoff_1 = 20_000, cutoff_2 = 75_000";
  std::vector<World> out;
  for (const auto& [name, cc, transport, fabric] :
       std::initializer_list<std::tuple<const char*, std::string, std::string, std::string>>{
           {"cnp_in_ack", cc_line("dcqcn"), "calibration = true, cnp_in_ack = true", ""},
           {"cnp_in_ack_seldom", cc_line("dcqcn"),
            "calibration = true, cnp_in_ack = true, ack_every = 8", ""},
           {"cnp_of_every_mark", cc_line("dcqcn", "mellanox"), "cnp_interval = \"0ps\"", ""},
           {"ack_every_16", cc_line("dcqcn"), "ack_every = 16", ""},
           {"ack_every_7_selective", cc_line("swift"), selective + ", ack_every = 7", ""},
           {"ack_every_64", cc_line("cadence"), "ack_every = 64", "rate = \"25Gb/s\"\n"},
           {"peers_discovered", cc_line("cadence"), "peers = \"discover\"",
            "drop_control_ppm = 200000\n"},
           {"peers_discovered_selective", cc_line("eqds"), selective + ", peers = \"discover\"",
            "drop_control_ppm = 100000\n"},
           {"peers_foreign", cc_line("cadence"), selective + ", foreign_hosts = [0, 3]", ""},
           {"peers_foreign_discovered", cc_line("homa"),
            "peers = \"discover\", foreign_hosts = [1]", ""},
           {"peers_roce", cc_line("sird"), selective + ", peers = \"roce\"", ""},
           {"grants_lost", cc_line("cadence"), selective, "drop_control_ppm = 300000\n"},
           {"grants_lost_eqds", cc_line("eqds", "uec"), "ack_every = 2",
            "drop_control_ppm = 300000\n"},
           {"grants_lost_homa", cc_line("homa"), selective, "drop_control_ppm = 300000\n"},
           {"grants_lost_sird", cc_line("sird", "scheduled"), "", "drop_control_ppm = 300000\n"},
           {"cadence_200g", cc_line("cadence", "default"), selective, "rate = \"200Gb/s\"\n"},
           {"homa_priorities", cc_line("homa", "priorities", priorities), "", ""},
           {"homa_priorities_selective", cc_line("homa", "priorities", priorities), selective, ""},
           {"window_of_64", cc_line("fixed"),
            selective + ", window_packets = 64, reorder_packets = 1", "reorder = 0.02\n"},
           {"placed_in_order", cc_line("timely", "patched"),
            selective + ", place_in_order = true, reorder_packets = 8", "reorder = 0.02\n"},
           {"many_paths_in_order", cc_line("fixed"),
            selective + ", multipath = \"packet\", place_in_order = true", "reorder = 0.02\n"},
           {"few_retries", cc_line("dcqcn"), "retry_count = 0, ack_every = 4", "loss = 0.02\n"},
           {"few_retries_selective", cc_line("dcqcn"), selective + ", retry_count = 1",
            "loss = 0.05\n"},
           {"much_lost", cc_line("dcqcn"), "", "loss = 0.02\n"},
           {"much_lost_selective", cc_line("nscc", "fractions"), selective, "loss = 0.05\n"},
           {"calibrated", cc_line("dcqcn", "hpcc-repo"), "calibration = true",
            "fixed_overhead_bytes = 48\nsmall_packet_bytes = 84\n"},
       }) {
    World w;
    w.name = std::string("transport/") + name;
    std::string stars = star;
    // The fabric's own loss replaces the star's.
    if (fabric.find("loss") != std::string::npos && fabric.find("loss") < 1) {
      stars.replace(stars.find("loss = 5e-4\n"), 12, "");
    }
    w.toml = "seed = 3\n" + cc + transport_line(transport) + stars + fabric + work;
    out.push_back(w);
  }
  return out;
}

}  // namespace paceline::simtest::identity

// What a fabric does to packets, each by itself: buffers that overflow, pauses, credits, trimming,
// marks, links that fail and change, classes, many paths.
#include <utility>

#include "tests/sim/identity.h"

namespace paceline::simtest::identity {

namespace {

const std::string kSelective = "reliability = \"selective\"";
const std::string kStar = "[fabric]\nhosts = 9\n";
const std::string kLeafSpine =
    "[fabric]\ntopology = \"leaf_spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n";
const std::string kFatTree = "[fabric]\ntopology = \"fat_tree\"\nk = 4\n";
const std::string kMarks = "ecn = { kmin = \"20kB\", kmax = \"80kB\" }\n";
const std::string kShallow =
    "buffer = \"300kB\"\n" + kMarks + "pfc = { headroom = \"20kB\", xon_offset = \"3kB\" }\n";
const std::string kShallowLossy = "buffer = \"100kB\"\npfc = { enabled = false }\n" + kMarks;
const std::string kIncast =
    "[workload]\nkind = \"incast\"\nfan_in = 8\nmessage_bytes = \"150kB\"\n"
    "start_jitter = \"2us\"\n";
const std::string kPermutation =
    "[workload]\nkind = \"permutation\"\nmessage_bytes = \"200kB\"\nstart_jitter = \"3us\"\n";
const std::string kAllToAll =
    "[workload]\nkind = \"all_to_all\"\nmessage_bytes = \"20kB\"\nskew = 1.0\n"
    "start_jitter = \"10us\"\n";
const std::string kRing =
    "[workload]\nkind = \"ring_all_reduce\"\nall_reduce_bytes = \"300kB\"\n"
    "chunk_bytes = \"16KiB\"\nstart_jitter = \"5us\"\n";

std::string event(const std::string& at, const std::string& link, const std::string& what) {
  return "[[event]]\nat = \"" + at + "\"\nlink = \"" + link + "\"\n" + what + "\n";
}

// Each host sends in classes 0, 3 and 5 to its neighbours, on lanes that share queue pairs or not.
MessagePlan in_classes(const config::Scenario& scenario) {
  MessagePlan plan;
  const std::uint32_t hosts = scenario.fabric.hosts;
  for (std::uint32_t i = 0; i < 8 * hosts; ++i) {
    PlannedMessage m;
    m.start = picos_from_micros(i / hosts);
    m.src = i % hosts;
    m.dst = (m.src + 1 + i % 3) % hosts;
    m.bytes = 1 + 7919ULL * i % 40'000;
    const std::uint8_t classes[] = {0, 3, 5};
    m.traffic_class = classes[i % 3];
    m.lane = i % 4 == 0 ? kNoMessage : i % 2;
    plan.messages.push_back(m);
  }
  return plan;
}

void add_congestion(std::vector<World>& out) {
  const auto add = [&](const char* name, const std::string& toml) {
    World w;
    w.name = std::string("fabric/") + name;
    w.toml = toml;
    out.push_back(w);
  };
  add("pauses", cc_line("dcqcn", "paper") + transport_line("") + kStar + kShallow + kIncast);
  add("pauses_with_acks", cc_line("cadence") + transport_line("ack_every = 3") + kLeafSpine +
                              kShallow + "ack_class = 3\ncnp_class = 3\n" + kAllToAll);
  add("pauses_many_paths", cc_line("fixed") +
                               transport_line(kSelective + ", multipath = \"packet\"") +
                               kLeafSpine + kShallow + kAllToAll);
  add("overflow",
      cc_line("dcqcn", "hpcc-repo") + transport_line("") + kStar + kShallowLossy + kIncast);
  add("overflow_selective", cc_line("timely") + transport_line(kSelective + ", ack_every = 8") +
                                kStar + kShallowLossy + kIncast);
  add("credits", cc_line("fixed") + transport_line("") + kStar +
                     "flow_control = \"credit\"\necn = { enabled = false }\n" + kIncast);
  add("credits_scarce", cc_line("dcqcn") + transport_line(kSelective) + kLeafSpine +
                            "flow_control = \"credit\"\ncredit = { buffer = \"9kB\", update = "
                            "\"1kB\" }\n" +
                            kMarks + kAllToAll);
  add("marks_by_rate",
      cc_line("dctcp") + transport_line("") + kLeafSpine +
          "uplink_rate = \"40Gb/s\"\n[[fabric.ecn.at_rate]]\nrate = \"40Gb/s\"\nkmin = \"10kB\"\n"
          "kmax = \"10kB\"\npmax = 1\n" +
          kPermutation);
  add("classes_weighted", cc_line("dcqcn") + transport_line("ack_every = 2") + kLeafSpine +
                              "class_weights = [1, 1, 1, 3, 1, 1, 1, 0]\n" + kMarks + kPermutation);
  out.back().plan = in_classes;
  add("classes_strict", cc_line("cadence") + transport_line(kSelective) + kStar + kMarks + kIncast);
  out.back().plan = in_classes;
  add("real_frames", cc_line("dcqcn", "mellanox") +
                         "transport = { payload_bytes = 4096, cnp_interval = \"0ps\" }\n" + kStar +
                         kMarks + "frame_overhead_bytes = 24\n" + kIncast);
}

void add_trimming(std::vector<World>& out) {
  const std::string trim =
      "pfc = { enabled = false }\ntrim = { enabled = true, threshold = \"32kB\" }\n" + kMarks;
  for (const auto& [name, cc, transport] : {
           std::tuple<const char*, std::string, std::string>{"eqds", cc_line("eqds"), kSelective},
           {"nscc", cc_line("nscc", "trimming"), kSelective + ", ack_every = 4"},
           {"sird", cc_line("sird"), kSelective + ", reorder_packets = 4"},
           {"fixed", cc_line("fixed"), kSelective + ", multipath = \"chunk\", path_run = 4"},
           {"in_order", cc_line("dcqcn"), kSelective + ", place_in_order = true"},
       }) {
    World w;
    w.name = std::string("trimming/") + name;
    w.toml = "seed = 5\n" + cc + transport_line(transport) + kLeafSpine + trim +
             "loss = 1e-4\nduplicate = 1e-3\n" + kAllToAll;
    out.push_back(w);
  }
}

void add_links(std::vector<World>& out) {
  const std::string fabric = kLeafSpine + "reroute_delay = \"5us\"\n";
  const std::string flap = event("10us", "leaf0-spine1", "action = \"down\"") +
                           event("30us", "leaf0-spine1", "action = \"up\"") +
                           event("12us", "host5", "action = \"down\"") +
                           event("25us", "host5", "action = \"up\"");
  const std::string changes =
      event("8us", "leaf0-spine0", "action = \"rate\"\nrate = \"33Gb/s\"") +
      event("9us", "host2", "action = \"delay\"\ndelay = \"3us\"") +
      event("11us", "leaf1-spine1", "action = \"loss\"\nprobability = 0.02") +
      event("14us", "leaf1-spine0", "action = \"corrupt\"\nprobability = 0.02") +
      event("16us", "host6", "action = \"duplicate\"\nprobability = 0.05") +
      event("18us", "host3", "action = \"reorder\"\nprobability = 0.05") +
      event("20us", "host2", "action = \"delay\"\ndelay = \"300ns\"");
  // Without an end of time the host behind the link waits for it for good.
  const std::string end = "duration = \"1ms\"\n";
  const std::string gone = event("10us", "host0", "action = \"down\"");
  const auto add = [&](const char* name, const std::string& toml) {
    World w;
    w.name = std::string("links/") + name;
    w.toml = toml;
    w.threads = 2;
    out.push_back(w);
  };
  add("fail", cc_line("dcqcn") + transport_line("") + fabric + kPermutation + flap);
  add("fail_keeping", cc_line("cadence") + transport_line(kSelective) + fabric +
                          "queued_when_down = \"keep\"\n" + kPermutation + flap);
  add("fail_credits", cc_line("fixed") + transport_line("ack_every = 5") + fabric +
                          "flow_control = \"credit\"\n" + kAllToAll + flap);
  add("fail_many_paths", cc_line("nscc") +
                             transport_line(kSelective + ", multipath = \"packet\", paths = 16") +
                             fabric + kPermutation + flap);
  add("change", cc_line("swift") + transport_line("") + fabric + kMarks + kPermutation + changes);
  add("change_selective", cc_line("theta-powertcp") +
                              transport_line(kSelective + ", ack_every = 3") + fabric + kMarks +
                              kAllToAll + changes);
  for (const auto& [name, reliability] :
       {std::pair("gone", "go_back_n"), std::pair("gone_selective", "selective")}) {
    add(name, end + cc_line("dcqcn") +
                  "transport = { payload_bytes = 1024, retransmit_timeout = \"20us\", retry_count "
                  "= 2, reliability = \"" +
                  reliability + "\" }\n" + fabric + kAllToAll + gone);
  }
  add("gone_granting", end + cc_line("cadence") +
                           "transport = { payload_bytes = 1024, retransmit_timeout = \"20us\", "
                           "retry_count = 1 }\n" +
                           fabric + kAllToAll + gone);
}

void add_paths(std::vector<World>& out) {
  const auto add = [&](const char* name, const std::string& toml, std::uint32_t threads) {
    World w;
    w.name = std::string("paths/") + name;
    w.toml = toml;
    w.threads = threads;
    out.push_back(w);
  };
  add("ecmp", cc_line("dcqcn") + transport_line("") + kFatTree + kMarks + kPermutation, 3);
  add("spray",
      cc_line("cadence") + transport_line(kSelective) + kFatTree + "load_balance = \"spray\"\n" +
          kPermutation,
      2);
  add("spray_random",
      cc_line("dctcp") + transport_line(kSelective + ", window_packets = 64") + kFatTree +
          "load_balance = \"spray_random\"\n" + kMarks + kPermutation,
      2);
  add("chunks",
      cc_line("swift") +
          transport_line(kSelective + ", multipath = \"chunk\", paths = 4, path_run = 8") +
          kFatTree + "loss = 1e-3\n" + kPermutation,
      2);
  add("packets",
      cc_line("dcqcn") + transport_line(kSelective + ", multipath = \"packet\"") + kFatTree +
          kMarks + "loss = 1e-3\n" + kRing,
      1);
  add("telemetry",
      cc_line("hpcc") + transport_line(kSelective) + kFatTree + "int = true\n" + kShallowLossy +
          kAllToAll,
      2);
  add("telemetry_many_paths",
      cc_line("powertcp") + transport_line(kSelective + ", multipath = \"packet\"") + kFatTree +
          "int = true\n" + kPermutation,
      2);
  add("trunk",
      cc_line("sird", "srpt") + transport_line("ack_every = 2") +
          "[fabric]\ntopology = \"dumbbell\"\nhosts = 8\nrate = \"25Gb/s\"\n"
          "uplink_rate = \"40Gb/s\"\nlinks_per_pair = 2\n" +
          kPermutation,
      2);
  add("ring", cc_line("cadence") + transport_line("") + kLeafSpine + kRing, 2);
}

}  // namespace

std::vector<World> fabric_worlds() {
  std::vector<World> out;
  add_congestion(out);
  add_trimming(out);
  add_links(out);
  add_paths(out);
  return out;
}

}  // namespace paceline::simtest::identity

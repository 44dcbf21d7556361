#include "tools/workload/files/hpcc_format.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline::workload {
namespace {

using Lines = std::vector<std::string>;

// Two racks of two hosts, a spine, numbered as that simulator allows: switches anywhere.
const std::string kTwoRacks =
    "7 3 6\n"
    "0 4 2\n"
    "1 0 100Gbps 1us 0\n"
    "3 0 100Gbps 1us 0\n"
    "5 4 25Gbps 1000ns 0.000000\n"
    "6 4 25Gbps 0.001ms 0\n"
    "0 2 400Gbps 500ns 0.25\n"
    "2 4 400Gbps 500ns 0\n";

Lines topology_errors(const std::string& text) { return parse_hpcc_topology(text, "t").errors; }

std::string changed(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

TEST_CASE("a topology's nodes become hosts, then switches", "[workload]") {
  const auto t = parse_hpcc_topology(kTwoRacks, "t");
  REQUIRE(t.errors == Lines{});
  const NodeNumbers& n = t.value.numbers;
  REQUIRE(n.hosts() == 4);
  REQUIRE(n.switches() == 3);
  CHECK(n.host_index(1) == 0);
  CHECK(n.host_index(6) == 3);
  CHECK(n.host_index(0) == NodeNumbers::kNone);
  CHECK(n.node_index(0) == 4);
  CHECK(n.node_index(2) == 5);
  CHECK(n.number(6) == 4);
  REQUIRE(t.value.links.size() == 6);
  const config::LinkSpec& spine = t.value.links[4];
  CHECK(spine.a == 4);
  CHECK(spine.b == 5);
  CHECK(spine.rate == rate_from_gbps(400));
  CHECK(spine.delay == picos_from_nanos(500));
  CHECK(spine.error_rate == 0.25);
  CHECK(t.value.links[3].delay == picos_from_micros(1));
}

TEST_CASE("a topology that is written reads back", "[workload]") {
  const auto first = parse_hpcc_topology(kTwoRacks, "t");
  const std::string text = write_hpcc_topology(first.value);
  const auto again = parse_hpcc_topology(text, "t");
  REQUIRE(again.errors == Lines{});
  CHECK(write_hpcc_topology(again.value) == text);
  REQUIRE(again.value.links.size() == first.value.links.size());
  for (std::size_t i = 0; i < again.value.links.size(); ++i) {
    CHECK(again.value.links[i].a == first.value.links[i].a);
    CHECK(again.value.links[i].b == first.value.links[i].b);
    CHECK(again.value.links[i].rate == first.value.links[i].rate);
    CHECK(again.value.links[i].delay == first.value.links[i].delay);
    CHECK(again.value.links[i].error_rate == first.value.links[i].error_rate);
  }
}

TEST_CASE("topology errors point at the word", "[workload]") {
  CHECK(topology_errors("") == Lines{"t:1:1: empty: expected `nodes switches links`"});
  CHECK(topology_errors("7 3\n") == Lines{"t:1:1: 2 columns: expected 3, `nodes switches links`"});
  CHECK(topology_errors(changed(kTwoRacks, "7 3 6", "7 -3 6")) ==
        Lines{"t:1:3: switches = \"-3\": expected an integer in [1 .. 5]"});
  CHECK(topology_errors(changed(kTwoRacks, "0 4 2", "0 4")) ==
        Lines{"t:2:4: 2 switch numbers: line 1 announces 3"});
  CHECK(topology_errors(changed(kTwoRacks, "0 4 2", "0 4 4")) ==
        Lines{"t:2:5: switch 4 is named twice"});
  CHECK(topology_errors(changed(kTwoRacks, "0 4 2", "0 4 7")) ==
        Lines{"t:2:5: switch = \"7\": expected an integer in [0 .. 6]"});
  CHECK(topology_errors(changed(kTwoRacks, "5 4 25Gbps", "7 4 25Gbps")).at(0) ==
        "t:5:1: a = \"7\": expected an integer in [0 .. 6]");
  CHECK(topology_errors(changed(kTwoRacks, "25Gbps", "-25Gbps"))
            .at(0)
            .starts_with("t:5:5: rate = \"-25Gbps\": it must not be negative; "));
  CHECK(topology_errors(changed(kTwoRacks, "25Gbps", "0Gbps")) ==
        Lines{"t:5:5: rate = \"0Gbps\": out of range, allowed is [1Mb/s .. 3200Gb/s]"});
  CHECK(topology_errors(changed(kTwoRacks, "1000ns", "0ns")) ==
        Lines{"t:5:12: delay = \"0ns\": out of range, allowed is [1ns .. 1s]"});
  CHECK(topology_errors(changed(kTwoRacks, "0.25", "1.25")) ==
        Lines{"t:7:19: error_rate = \"1.25\": expected a number in [0 .. 1]"});
  CHECK(topology_errors(changed(kTwoRacks, "0.25", "")) ==
        Lines{"t:7:18: 4 columns: expected 5, `a b rate delay error_rate`"});
  CHECK(topology_errors(changed(kTwoRacks, "1 0 100", "0 0 100")).at(0) ==
        "t:3:1: a link from node 0 to itself");
  CHECK(topology_errors(changed(kTwoRacks, "1 0 100", "1 3 100")) ==
        Lines{"t:3:1: nodes 1 and 3 are both hosts; a host connects to a switch"});
}

TEST_CASE("truncated and overlong topologies", "[workload]") {
  CHECK(topology_errors("7 3 6\n") ==
        Lines{"t:1:6: truncated: expected the numbers of 3 switches"});
  CHECK(topology_errors(changed(kTwoRacks, "2 4 400Gbps 500ns 0\n", "")) ==
        Lines{"t:7:23: truncated: line 1 announces 6 links, the file has 5"});
  CHECK(topology_errors(kTwoRacks + "1 4 1Gbps 1us 0\n") ==
        Lines{"t:9:1: trailing data after the 6 links that line 1 announces"});
  CHECK(topology_errors(kTwoRacks + "rubbish\n").size() == 1);
  CHECK(topology_errors(kTwoRacks + "\nFirst line: notes\nmore notes\n") == Lines{});
  CHECK(topology_errors(kTwoRacks + "\nFirst line: notes\n1 4 1Gbps 1us 0\n").size() == 1);
}

TEST_CASE("every host is reachable, by one port", "[workload]") {
  CHECK(topology_errors(changed(kTwoRacks, "6 4 25Gbps", "2 4 25Gbps")) ==
        Lines{"t:1:1: host 6 is unreachable: it has no link"});
  CHECK(topology_errors(changed(kTwoRacks, "6 4 25Gbps", "5 0 25Gbps")) ==
        Lines{"t:1:1: host 6 is unreachable: it has no link",
              "t:6:1: a second link of host 5; a host has one port"});
  CHECK(topology_errors(changed(kTwoRacks, "2 4 400Gbps", "0 2 400Gbps")) ==
        Lines{"t:5:1: host 5 is unreachable: no path to host 1",
              "t:6:1: host 6 is unreachable: no path to host 1"});
  CHECK(read_hpcc_topology("/no/such").errors ==
        Lines{"/no/such: cannot be opened: No such file or directory"});
}

const NodeNumbers kNumbers({1, 3, 5, 6}, {0, 2, 4});

Lines flow_errors(const std::string& text) { return parse_hpcc_flows(text, "f", kNumbers).errors; }

TEST_CASE("flows name hosts by the topology's numbers and start exactly", "[workload]") {
  const auto f =
      parse_hpcc_flows("2\n6 1 3 100 200000000 2\n1 5 2 4791 1 0.000000123456\n", "f", kNumbers);
  REQUIRE(f.errors == Lines{});
  REQUIRE(f.value.size() == 2);
  CHECK(f.value[0] == HpccFlow{3, 0, 3, 100, 200'000'000, Picos{2'000'000'000'000}});
  CHECK(f.value[1] == HpccFlow{0, 2, 2, 4791, 1, Picos{123'456}});
  // As the format's own examples end.
  CHECK(flow_errors("1\n1 3 3 100 5 2\n\nFirst line: # of flows\nsrc0 dst0 3 dst_port0\n...\n") ==
        Lines{});
}

TEST_CASE("flow errors point at the word", "[workload]") {
  CHECK(flow_errors("1\n1 1 3 100 5 0\n") == Lines{"f:2:3: dst = 1: a flow from host 1 to itself"});
  CHECK(flow_errors("1\n1 7 3 100 5 0\n") ==
        Lines{"f:2:3: dst = \"7\": expected an integer in [0 .. 6]"});
  CHECK(flow_errors("1\n1 4 3 100 5 0\n") ==
        Lines{"f:2:3: dst = 4: a switch; flows run between hosts"});
  CHECK(flow_errors("1\n1 3 3 100 -5 0\n") ==
        Lines{"f:2:11: bytes = \"-5\": expected an integer in [1 .. 1000000000000000]"});
  CHECK(flow_errors("1\n1 3 7 100 5 0\n") ==
        Lines{"f:2:5: pg = \"7\": expected an integer in [0 .. 6]"});
  CHECK(flow_errors("1\n1 3 3 65536 5 0\n") ==
        Lines{"f:2:7: dport = \"65536\": expected an integer in [0 .. 65535]"});
  CHECK(flow_errors("1\n1 3 3 " + std::string(1'000'000, '7') + " 5 0\n") ==
        Lines{"f:2:7: dport = \"" + std::string(80, '7') +
              "...\": expected an integer in [0 .. 65535]"});
  CHECK(flow_errors("1\n1 3 3 100 5 -1\n") == Lines{"f:2:13: start_seconds = \"-1\": it must not "
                                                    "be negative; expected seconds, at least 0, to "
                                                    "at most 12 decimals"});
  CHECK(flow_errors("1\n1 3 3 100 5 0.0000000000001\n").size() == 1);
  CHECK(flow_errors("1\n1 3 3 100 5 1e30\n").size() == 1);
  CHECK(flow_errors("0\n") ==
        Lines{"f:1:1: count = \"0\": expected an integer in [1 .. 16777216]"});
  CHECK(flow_errors("two\n").size() == 1);
  CHECK(flow_errors("1 2\n") == Lines{"f:1:3: 2 columns: expected 1, the number of flows"});
}

TEST_CASE("truncated and overlong flow lists", "[workload]") {
  CHECK(flow_errors("") == Lines{"f:1:1: empty: expected the number of flows"});
  CHECK(flow_errors("3\n1 3 3 100 5 0\n3 1 3 100 5 0\n") ==
        Lines{"f:3:14: truncated: line 1 announces 3 flows, the file has 2"});
  CHECK(flow_errors("1\n1 3 3 100\n") ==
        Lines{"f:2:10: 4 columns: expected 6, `src dst pg dport bytes start_seconds`"});
  CHECK(flow_errors("1\n1 3 3 100 5 0\n3 1 3 100 5 0\n") ==
        Lines{"f:3:1: trailing data after the 1 flows that line 1 announces"});
  // All of them, not the first.
  CHECK(flow_errors("2\n1 1 9 100 5 0\n3 9 3 100 0 x\n").size() == 5);
}

TEST_CASE("random flow lists that are written read back", "[workload]") {
  constexpr std::uint64_t kSeed = 8;
  INFO("seed " << kSeed);
  Random random(kSeed);
  std::vector<HpccFlow> flows;
  for (int i = 0; i < 500; ++i) {
    HpccFlow f;
    f.src = static_cast<std::uint32_t>(random.below(4));
    f.dst = (f.src + 1 + static_cast<std::uint32_t>(random.below(3))) % 4;
    f.priority_group = static_cast<std::uint8_t>(random.below(7));
    f.dst_port = static_cast<std::uint16_t>(random.below(65536));
    f.bytes = 1 + random.below(1'000'000'000'000'000);
    f.start = Picos{static_cast<std::int64_t>(random.next() >> (1 + random.below(60)))};
    flows.push_back(f);
  }
  const auto again = parse_hpcc_flows(write_hpcc_flows(flows, kNumbers), "f", kNumbers);
  REQUIRE(again.errors == Lines{});
  CHECK(again.value == flows);
}

}  // namespace
}  // namespace paceline::workload

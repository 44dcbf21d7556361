#include "tools/workload/files/htsim_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "tools/workload/matrix_plan.h"
#include "tools/workload/workload.h"

namespace paceline::workload {
namespace {

using Lines = std::vector<std::string>;

std::string matrix_path(const std::string& name) {
  return std::string(PACELINE_SOURCE_DIR) + "/tests/unit/workload/matrices/" + name;
}

std::string matrix_text(const std::string& name) {
  std::ifstream in(matrix_path(name));
  std::stringstream text;
  text << in.rdbuf();
  REQUIRE_FALSE(text.str().empty());
  return text.str();
}

struct MatrixFigures {
  std::size_t flows, triggers;
  std::uint64_t bytes;
  std::uint32_t fan_in;
  bool operator==(const MatrixFigures&) const = default;
};

MatrixFigures figures_of(const HtsimMatrix& matrix) {
  MatrixFigures out{matrix.flows.size(), matrix.triggers.size(), 0, 0};
  std::map<std::uint32_t, std::uint32_t> senders;
  for (const HtsimFlow& f : matrix.flows) {
    out.bytes += f.bytes;
    out.fan_in = std::max(out.fan_in, ++senders[f.dst]);
  }
  return out;
}

std::size_t roots(const HtsimMatrix& matrix) {
  return static_cast<std::size_t>(std::count_if(matrix.flows.begin(), matrix.flows.end(),
                                                [](const HtsimFlow& f) { return f.trigger == 0; }));
}

MatrixFigures figures_of(const MessagePlan& plan, std::size_t triggers) {
  MatrixFigures out{plan.messages.size(), triggers, 0, 0};
  std::map<std::uint32_t, std::uint32_t> senders;
  for (const PlannedMessage& m : plan.messages) {
    out.bytes += m.bytes;
    out.fan_in = std::max(out.fan_in, ++senders[m.dst]);
  }
  return out;
}

std::size_t roots(const MessagePlan& plan) {
  return static_cast<std::size_t>(
      std::count_if(plan.messages.begin(), plan.messages.end(),
                    [](const PlannedMessage& m) { return m.after == kNoMessage; }));
}

HtsimMatrix good_matrix(const std::string& text, std::string_view unit = "") {
  const auto read = parse_htsim_matrix(text, "m", unit);
  REQUIRE(read.errors == Lines{});
  return read.value;
}

Lines matrix_errors(const std::string& text, std::string_view unit = "") {
  return parse_htsim_matrix(text, "m", unit).errors;
}

TEST_CASE("matrices of htsim: flows, triggers and bytes of its own files", "[workload]") {
  const std::map<std::string, MatrixFigures> files = {
      {"one.cm", {1, 0, 2'000'000, 1}},
      {"bidir.cm", {2, 0, 4'000'000, 1}},
      {"incast.cm", {15, 0, 30'000'000, 15}},
      {"incast_128.cm", {127, 0, 254'000'000, 127}},
      {"incast_1024_100K.cm", {1'023, 0, 102'300'000, 1'023}},
      {"outcast_incast.cm", {21, 0, 42'000'000, 3}},
      {"perm_16n_16c_2MB.cm", {16, 0, 32'000'000, 1}},
      {"perm_32n_32c_2MB.cm", {32, 0, 64'000'000, 1}},
      {"perm_128n_128c_2MB.cm", {128, 0, 256'000'000, 1}},
      {"perm_1024n_1024c_0u_2000000b.cm", {1'024, 0, 2'048'000'000, 1}},
      {"alltoall_serial_16n.cm", {240, 224, 480'000'000, 15}},
      {"foo2.cm", {12, 8, 24'000'000, 3}},
      {"incast_2to1_size4194304B.cm", {2, 0, 8'388'608, 2}},
      {"gen_random_incast_8192n_128c_0us_1Ms.cm", {128, 0, 134'217'728, 128}},
      {"test_cr_1f10m10p.cm", {10, 0, 408'600, 10}},
      {"test_cr_1f10m1p.cm", {10, 0, 40'860, 10}},
      {"test_cr_1f1m10p.cm", {1, 0, 40'860, 1}},
  };
  for (const auto& [name, figures] : files) {
    CAPTURE(name);
    const HtsimMatrix matrix = good_matrix(matrix_text(name));
    CHECK(figures_of(matrix) == figures);
    for (const HtsimFlow& f : matrix.flows) CHECK(f.start.count == 0);
    const auto plan = plan_of_matrix(matrix, "m");
    REQUIRE(plan.errors == Lines{});
    CHECK(figures_of(plan.value, matrix.triggers.size()) == figures);
    CHECK(roots(plan.value) == roots(matrix));
  }
  CHECK(roots(good_matrix(matrix_text("alltoall_serial_16n.cm"))) == 16);
  CHECK(roots(good_matrix(matrix_text("foo2.cm"))) == 4);
  CHECK(good_matrix(matrix_text("foo2.cm")).nodes == 128);
  CHECK(matrix_errors(matrix_text("a2a.cm")) ==
        Lines{"m:243:37: Connections = 3600 in the header: the file has 240",
              "m:243:37: Triggers = 3360 in the header: the file has 0"});
}

TEST_CASE("matrices of htsim: starts in microseconds ask for their unit", "[workload]") {
  struct Starts {
    std::string name;
    std::int64_t latest;
    std::size_t flows;
    std::uint64_t bytes;
  };
  for (const auto& [name, latest, flows, bytes] :
       {Starts{"incast_3-1_overlapped.tm", 40, 3, 2'500'000},
        Starts{"gen_random_incast_8192n_128c_16us_1Ms.cm", 16, 128, 134'217'728},
        Starts{"gen_remote_incast_8192n_8c_16us_1Ms.cm", 15, 8, 8'388'608}}) {
    CAPTURE(name);
    const std::string text = matrix_text(name);
    const Lines errors = matrix_errors(text);
    REQUIRE(errors.size() == 1);
    CHECK_THAT(errors[0], Catch::Matchers::Contains(
                              fmt::format("start = {} is the latest: microseconds or picoseconds; "
                                          "expected the key start_unit",
                                          latest)));
    for (const bool micros : {false, true}) {
      const HtsimMatrix matrix = good_matrix(text, micros ? "us" : "ps");
      CHECK(figures_of(matrix).flows == flows);
      CHECK(figures_of(matrix).bytes == bytes);
      Picos last{0};
      for (const HtsimFlow& f : matrix.flows) last = std::max(last, f.start);
      CHECK(last.count == latest * (micros ? 1'000'000 : 1));
    }
  }
  const std::string fine = "Nodes 2\nConnections 1\n0->1 start 1.5 size 1\n";
  CHECK(good_matrix(fine, "us").flows[0].start.count == 1'500'000);
  CHECK(matrix_errors(fine).size() == 1);
}

TEST_CASE("matrices of htsim: what is wrong is named with its place", "[workload]") {
  const std::string head = "Nodes 4\nConnections 1\n";
  const auto flow = [&](const std::string& line) { return matrix_errors(head + line + "\n"); };
  CHECK(flow("0->1 start 0 size 5 prio 7").empty());
  CHECK(flow("0->1 start 0") == Lines{"m:3:1: 0->1: expected size BYTES"});
  CHECK(flow("0->1 size 5") == Lines{"m:3:1: 0->1: expected either start TIME or trigger NUMBER"});
  CHECK(flow("0->1 start 0 size") == Lines{"m:3:18: expected a number after size"});
  CHECK(flow("0->1 start 0 size 2147483648") ==
        Lines{"m:3:19: size = \"2147483648\": expected an integer in [1 .. 2147483647]"});
  CHECK(flow("0->4 start 0 size 5") ==
        Lines{"m:3:4: node = \"4\": expected an integer in [0 .. 3]"});
  CHECK(flow("->1 start 0 size 5") == Lines{"m:3:1: node = \"\": expected an integer in [0 .. 3]"});
  CHECK(flow("2->2 start 0 size 5") == Lines{"m:3:1: 2->2: a flow from a node to itself"});
  CHECK(flow("0->1 id 0 start 0 size 5") ==
        Lines{"m:3:9: id = \"0\": expected an integer in [1 .. 4294967295]"});
  CHECK(flow("0->1 start 0 start 0 size 5") == Lines{"m:3:14: start is given twice"});
  CHECK(flow("0->1 msg start 0 size 5") == Lines{"m:3:1: 0->1: a flow with msg needs an id"});
  CHECK(flow("0->1 start 0 bytes 5") ==
        Lines{
            "m:3:14: unknown word bytes: expected id, start, trigger, size, send_done_trigger, "
            "recv_done_trigger, prio or msg",
        });
  CHECK(flow("0->1 id 1 trigger 9 size 5") ==
        Lines{"m:3:1: trigger 9: expected a line `trigger id 9 ...`"});
  CHECK(flow("0->1 start 0 size 5\n1->0 start 0 size 5") ==
        Lines{"m:4:1: Connections = 1 in the header: here is one more"});
  CHECK(flow("links 3") ==
        Lines{"m:3:1: unknown word links: expected Nodes, Connections, Triggers, Failures, or a "
              "flow such as 0->1"});
  CHECK(flow("") == Lines{"m:3:1: Connections = 1: the file has 0"});
  CHECK(matrix_errors("Nodes 4\n0->1 start 0 size 5\n") ==
        Lines{"m:2:1: expected a line `Connections NUMBER` before the first flow"});
  CHECK(matrix_errors("Nodes 4 5\n") == Lines{"m:1:10: 3 columns: expected 2, `Nodes NUMBER`"});
  CHECK(matrix_errors("Nodes 4\nNodes 4\n").front() == "m:2:1: Nodes is given twice");
  CHECK(matrix_errors("num_ranks 2\nrank 0 {\n") ==
        Lines{"m:1:1: this seems to be a GOAL schedule: expected a connection matrix of htsim"});

  const std::string two = "Nodes 4\nConnections 2\nTriggers 1\n";
  CHECK(matrix_errors(two + "0->1 id 1 start 0 size 5\n0->1 id 1 start 0 size 5\n"
                            "trigger id 1 oneshot\n") ==
        Lines{"m:5:1: id 1 is that of line 4: expected msg in both, or another id"});
  CHECK(matrix_errors(two + "0->1 id 1 msg start 0 size 5\n1->0 id 1 msg 2 start 0 size 5\n"
                            "trigger id 1 oneshot\n") ==
        Lines{"m:5:1: 1->0: connection 1 is 0->1 in line 4"});
  const std::string flows = two + "0->1 start 0 size 5\n1->0 start 0 size 5\n";
  for (const char* line : {"trigger id 1", "trigger oneshot", "trigger id 1 barrier",
                           "trigger id 1 oneshot count 2"}) {
    CAPTURE(line);
    CHECK(matrix_errors(flows + line + "\n") ==
          Lines{"m:6:1: expected `trigger id NUMBER` and oneshot, multishot or `barrier count "
                "NUMBER`"});
  }
  CHECK(matrix_errors(flows + "trigger id 1 twice\n") ==
        Lines{"m:6:14: twice: expected id, count, and one of oneshot, multishot and barrier"});
  CHECK(matrix_errors("Nodes 4\nConnections 1\nTriggers 2\n0->1 start 0 size 5\n"
                      "trigger id 1 oneshot\ntrigger id 1 oneshot\n") ==
        Lines{"m:6:1: trigger 1 is declared in line 5, too"});
  CHECK(matrix_errors("Nodes 4\nConnections 1\nFailures 1\n0->1 start 0 size 5\n"
                      "failure switch_type ROOF switch_id 1 link_id 1\n")
            .front() ==
        "m:5:1: expected `failure switch_type TOR|AGG|CORE switch_id NUMBER link_id NUMBER`");
}

TEST_CASE("a matrix of htsim is the workload of a scenario", "[workload]") {
  const auto loaded = [](const std::string& keys) {
    auto read = config::read_scenario_text("[fabric]\nhosts = 16\n[workload]\n" + keys, "s.toml",
                                           "", {cc::algorithms(), {}});
    REQUIRE(read.errors == Lines{});
    CHECK(read.value.workload.kind == "htsim");
    const auto inputs = load_inputs(read.value);
    if (!inputs.ok()) return config::Read<MessagePlan>{{}, inputs.errors};
    return make_plan(read.value, inputs.value, 1);
  };
  const auto incast = loaded(fmt::format("matrix_file = \"{}\"\n", matrix_path("incast.cm")));
  REQUIRE(incast.errors == Lines{});
  REQUIRE(incast.value.messages.size() == 15);
  for (std::uint32_t i = 0; i < 15; ++i) {
    CHECK(incast.value.messages[i].src == i);
    CHECK(incast.value.messages[i].dst == 15);
    CHECK(incast.value.messages[i].bytes == 2'000'000);
  }
  const std::string wide = matrix_path("perm_128n_128c_2MB.cm");
  CHECK(loaded(fmt::format("matrix_file = \"{}\"\n", wide)).errors ==
        Lines{wide + ": Nodes = 128: expected 16, as many as the fabric has hosts"});
}

}  // namespace
}  // namespace paceline::workload

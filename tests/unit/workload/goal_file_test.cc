#include "tools/workload/jobs/goal_file.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace paceline::workload {
namespace {

using Lines = std::vector<std::string>;
using Waits = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

std::string goal_path(const std::string& name) {
  return std::string(PACELINE_SOURCE_DIR) + "/tests/unit/workload/jobs/goal/" + name;
}

Job good_goal(const std::string& text) {
  const auto read = parse_goal(text, "g");
  REQUIRE(read.errors == Lines{});
  return read.value;
}

Job one_rank(const std::string& body) {
  return good_goal("num_ranks 1\nrank 0 {\n" + body + "}\n");
}

Lines goal_errors(const std::string& text) { return parse_goal(text, "g").errors; }

std::int64_t count_kind(const Job& job, JobOpKind kind) {
  return std::count_if(job.ops.begin(), job.ops.end(),
                       [kind](const JobOp& op) { return op.kind == kind; });
}

TEST_CASE("GOAL: the binomial broadcast of 32 ranks", "[workload]") {
  const auto read = read_goal_file(goal_path("binary_tree_32.goal"));
  REQUIRE(read.errors == Lines{});
  CHECK(read.warnings == Lines{});
  const Job& job = read.value;
  CHECK(job.ranks == 32);
  CHECK(count_kind(job, JobOpKind::send) == 31);
  CHECK(count_kind(job, JobOpKind::receive) == 31);
  CHECK(count_kind(job, JobOpKind::compute) == 0);
  CHECK(job.waits.size() == 26);
  std::uint32_t sent_by_root = 0;
  // A rank of a binomial tree is reached in as many steps as its number has ones.
  std::vector<std::uint32_t> depth(32);
  for (const JobOp& op : job.ops) {
    CHECK(op.bytes == 1);
    CHECK(op.tag == 0);
    if (op.kind == JobOpKind::receive) depth[op.rank] = depth[op.peer] + 1;
    if (op.kind == JobOpKind::send && op.rank == 0) ++sent_by_root;
  }
  CHECK(sent_by_root == 5);
  CHECK(*std::max_element(depth.begin(), depth.end()) == 5);
  CHECK(depth[21] == 3);
}

TEST_CASE("GOAL: operations, options and wildcards", "[workload]") {
  const auto read = parse_goal(
      "// two ranks\nnum_ranks 2\n\nrank 0 {\nl1: calc 1000\nl2: send 8b to 1 tag 7 // eight\n"
      "l2 requires l1\n}\n/* the\nother */ rank 1 {\nrecv 8b from 0 tag 7 nic 1\n"
      "l_2 : recv 5 b from 0\n}\n",
      "g");
  CHECK(read.errors == Lines{"g:12:12: size = 5: expected bytes such as 8b"});
  const auto good = parse_goal(
      "num_ranks 2\r\nrank 1 {\r\nrecv 8b from -1 tag -1 cpu 3 nic 1\r\n}\r\n"
      "rank 0{\nl1:calc 1000 /* a\nnote */ l2: send 8b to 1 tag 7\nl2 requires l1\n}",
      "g");
  REQUIRE(good.errors == Lines{});
  CHECK(good.warnings == Lines{"g: 1 operations name a nic other than 0: a rank has one here"});
  const Job& job = good.value;
  REQUIRE(job.ops.size() == 3);
  CHECK(job.ops[0].rank == 1);
  CHECK(job.ops[0].kind == JobOpKind::receive);
  CHECK(job.ops[0].peer == kAnyRank);
  CHECK(job.ops[0].tag == kAnyTag);
  CHECK(job.ops[0].name == kNoName);
  CHECK(job.ops[1].duration == picos_from_nanos(1000));
  CHECK(job.ops[2].tag == 7);
  CHECK(job.ops[2].bytes == 8);
  CHECK(job.ops[2].line == 7);
  CHECK(job.names[job.ops[2].name] == "l2");
  CHECK(job.waits == Waits{{2, 1}});
}

TEST_CASE("GOAL: irequires waits for what the other waits for", "[workload]") {
  const Job job = one_rank(
      "a: recv 1b from 0\nb: recv 1b from 0\nc: send 1b to 0\nc requires a\nc requires b\n"
      "d: send 2b to 0\nd irequires c\ne: send 3b to 0\ne irequires d\nf: send 4b to 0\n"
      "f irequires a\n");
  CHECK(job.waits == Waits{{2, 0}, {2, 1}, {3, 0}, {3, 1}, {4, 0}, {4, 1}});
}

TEST_CASE("GOAL: calcs of one cpu are serial, sends and receives are not", "[workload]") {
  const Job job =
      one_rank("calc 1\nrecv 1b from 0\ncalc 2 cpu 1\nsend 1b to 0\ncalc 3\ncalc 4 cpu 1\n");
  CHECK(job.waits == Waits{{4, 0}, {5, 2}});
  // The order of the file gives way to a dependency: b, then a, then c.
  const Job turned = one_rank("a: calc 1\nb: calc 2\na requires b\nc: calc 3\n");
  REQUIRE(turned.ops.size() == 3);
  CHECK(turned.names[turned.ops[0].name] == "b");
  CHECK(turned.names[turned.ops[1].name] == "a");
  CHECK(turned.waits == Waits{{1, 0}, {2, 1}});
  // What starts with a calc waits for the calc before it on its cpu.
  CHECK(one_rank("a: calc 1\nb: calc 2\nc: send 1b to 0\nc irequires b\n").waits ==
        Waits{{1, 0}, {2, 0}});
}

TEST_CASE("GOAL: what is wrong is named with its place", "[workload]") {
  const auto body = [](const std::string& line) {
    return goal_errors("num_ranks 2\nrank 1 {\n}\nrank 0 {\n" + line + "\n}\n");
  };
  CHECK(body("send 8b to 1").empty());
  CHECK(body("send 8b to 2") == Lines{"g:5:12: rank = \"2\": expected an integer in [0 .. 1]"});
  CHECK(body("send 8b to -1") == Lines{"g:5:12: rank = \"-1\": expected an integer in [0 .. 1]"});
  CHECK(body("send 8b from 1") == Lines{"g:5:9: from: expected to"});
  CHECK(body("send 8b") == Lines{"g:5:8: expected to"});
  CHECK(body("send 8 to 1") == Lines{"g:5:6: size = 8: expected bytes such as 8b"});
  CHECK(body("send b to 1").front() ==
        "g:5:6: size = \"\": expected an integer in [0 .. 1000000000000000]");
  CHECK(body("send 8b to 1 tag -1").front() ==
        "g:5:18: tag = \"-1\": expected an integer in [0 .. 4294967294]");
  CHECK(body("send 8b to 1 tag 1 tag 2") == Lines{"g:5:20: tag is given twice"});
  CHECK(body("send 8b to 1 size 2") == Lines{"g:5:14: size: expected tag, cpu or nic"});
  CHECK(body("calc 8 tag 2") == Lines{"g:5:8: tag: expected cpu"});
  CHECK(body("calc 8 cpu") == Lines{"g:5:11: expected a number behind cpu"});
  CHECK(body("calc -8").front() ==
        "g:5:6: calc = \"-8\": expected an integer in [0 .. 1000000000000000]");
  CHECK(body("a:") == Lines{"g:5:3: expected send, recv or calc behind the label"});
  CHECK(body("wait 8") == Lines{"g:5:1: wait: expected send, recv, calc, `LABEL requires LABEL`, "
                                "`LABEL irequires LABEL` or }"});
  CHECK(body("a: calc 1\na: calc 2") ==
        Lines{"g:6:1: label a is that of line 5: expected another"});
  CHECK(body("a: calc 1\na requires b\nb: calc 1") ==
        Lines{"g:6:12: label b: expected one of an operation above, of this rank"});
  CHECK(body("a: calc 1\na requires a") ==
        Lines{"g:5:1: this operation waits for itself, by way of that of line 5"});
  CHECK(body("a: calc 1\nb: calc 1\na requires b\nb irequires a") ==
        Lines{"g:5:1: this operation waits for itself, by way of that of line 6"});
  CHECK(body("a: calc 1 /* b") == Lines{"g:5:11: this comment has no end: expected */"});
  CHECK(body(std::string("calc 1\0", 7)) ==
        Lines{"g:5:7: character 0x00: expected letters, digits, _, :, { or }"});

  CHECK(goal_errors("") == Lines{"g:1:1: the file is empty: expected num_ranks N"});
  CHECK(goal_errors("ranks 2\n") == Lines{"g:1:1: ranks: expected num_ranks N"});
  CHECK(goal_errors("num_ranks 0\n").front() ==
        "g:1:11: num_ranks = \"0\": expected an integer in [1 .. 524288]");
  CHECK(goal_errors("num_ranks 2\nrank 0 {\n}\n") ==
        Lines{"g:4:1: num_ranks = 2: expected `rank 1 {`, too"});
  CHECK(goal_errors("num_ranks 1\nrank 0 {\n}\nrank 0 {\n}\n") ==
        Lines{"g:4:6: rank 0 is given twice"});
  CHECK(goal_errors("num_ranks 1\nrank 0 {\ncalc 1\n") ==
        Lines{"g:4:1: rank 0 has no end: expected }"});
  CHECK(goal_errors("num_ranks 1\ncalc 1\n").front() == "g:2:1: calc: expected `rank R {`");
  CHECK(goal_errors("<algo/>\n") ==
        Lines{"g:1:1: this seems to be XML: expected a GOAL schedule (num_ranks N)"});
  CHECK(goal_errors("MICRO\n1\n") ==
        Lines{"g:1:1: this seems to be a workload of SimAI or ASTRA-sim: expected a GOAL schedule "
              "(num_ranks N)"});
  CHECK(read_goal_file(goal_path("")).errors.size() == 1);
  CHECK(read_goal_file(goal_path("none")).errors.size() == 1);
}

}  // namespace
}  // namespace paceline::workload

#include "tools/workload/jobs/chakra_trace.h"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tools/workload/jobs/chakra/protobuf_reader.h"

namespace paceline::workload {
namespace {

using Lines = std::vector<std::string>;
using Waits = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

std::string chakra_path(const std::string& name) {
  return std::string(PACELINE_SOURCE_DIR) + "/tests/unit/workload/jobs/chakra/" + name;
}

Job chakra_job(const std::string& name) {
  const auto files = find_chakra_traces(chakra_path(name));
  REQUIRE(files.errors == Lines{});
  REQUIRE(files.value.size() == 8);
  const auto read = read_chakra_traces(files.value);
  REQUIRE(read.errors == Lines{});
  CHECK(read.warnings == Lines{});
  return read.value;
}

// The wire format, written.
std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string number(unsigned field, std::uint64_t value) {
  return varint(field << 3) + varint(value);
}
std::string bytes(unsigned field, const std::string& data) {
  return varint(field << 3 | 2) + varint(data.size()) + data;
}
std::string framed(const std::string& message) { return varint(message.size()) + message; }
std::string attribute(const std::string& name, const std::string& value) {
  return bytes(10, bytes(1, name) + value);
}
const std::string kMetadata = framed(bytes(1, "1.0"));

std::string node(std::uint64_t id, unsigned type, const std::string& rest = "") {
  return framed(number(1, id) + number(3, type) + rest);
}
std::string collective(std::uint64_t id, std::uint64_t comm_type, const std::string& rest = "") {
  return node(
      id, 7,
      attribute("comm_type", number(9, comm_type)) + attribute("comm_size", number(9, 64)) + rest);
}

Imported<Job> one_trace(const std::string& nodes, const ChakraOptions& options = {}) {
  const std::string trace = kMetadata + nodes;
  return parse_chakra_traces(std::vector<ChakraFile>{{"t", trace}}, {}, options);
}

Lines trace_errors(const std::string& nodes, const ChakraOptions& options = {}) {
  return one_trace(nodes, options).errors;
}

TEST_CASE("Chakra: one collective of 1 MiB on each of 8 ranks", "[workload]") {
  for (const auto& [name, op] : {std::pair{"all_reduce.8npus_1MB", CollectiveOp::all_reduce},
                                 std::pair{"all_to_all.8npus_1MB", CollectiveOp::all_to_all}}) {
    CAPTURE(name);
    const Job job = chakra_job(name);
    CHECK(job.ranks == 8);
    REQUIRE(job.ops.size() == 8);
    CHECK(job.waits == Waits{});
    CHECK(job.groups == std::vector<std::vector<std::uint32_t>>{{0, 1, 2, 3, 4, 5, 6, 7}});
    for (std::uint32_t rank = 0; rank < 8; ++rank) {
      CHECK(job.ops[rank].rank == rank);
      CHECK(job.ops[rank].kind == JobOpKind::collective);
      CHECK(job.ops[rank].op == op);
      CHECK(job.ops[rank].bytes == 1'048'576);
      CHECK(job.ops[rank].group == 0);
    }
  }
}

TEST_CASE("Chakra: a ring all-reduce of 8 ranks as sends and receives", "[workload]") {
  const Job job = chakra_job("custom_ring_allreduce_8");
  REQUIRE(job.ops.size() == 8 * 35);
  CHECK(job.waits.size() == 8 * 34);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> sent, received;
  std::map<JobOpKind, std::size_t> kinds;
  for (const JobOp& op : job.ops) {
    ++kinds[op.kind];
    CHECK(op.tag == 0);
    if (op.kind == JobOpKind::compute) CHECK(op.duration == picos_from_micros(7));
    if (op.kind == JobOpKind::send) sent[{op.rank, op.peer}] += op.bytes;
    if (op.kind == JobOpKind::receive) received[{op.peer, op.rank}] += op.bytes;
  }
  CHECK(kinds == std::map<JobOpKind, std::size_t>{{JobOpKind::send, 8 * 14},
                                                  {JobOpKind::receive, 8 * 14},
                                                  {JobOpKind::compute, 8 * 7}});
  CHECK(sent == received);
  CHECK(sent.size() == 8);
  std::uint64_t all = 0;
  for (const auto& [pair, size] : sent) {
    CHECK(pair.second == (pair.first + 1) % 8);
    CHECK(size == 1'835'008);
    all += size;
  }
  CHECK(all == 14'680'064);
  for (const auto& [op, before] : job.waits) {
    CHECK(job.ops[op].rank == job.ops[before].rank);
    CHECK(before < op);
  }
}

TEST_CASE("Chakra: a file that is cut off anywhere is refused", "[workload]") {
  const std::string trace = kMetadata + node(1, 4, number(7, 300)) + collective(2, 0);
  const auto whole = parse_chakra_traces(std::vector<ChakraFile>{{"t", trace}}, {});
  REQUIRE(whole.errors == Lines{});
  REQUIRE(whole.value.ops.size() == 2);
  std::size_t shorter = 0;
  for (std::size_t length = 0; length < trace.size(); ++length) {
    CAPTURE(length);
    const std::string_view part = std::string_view(trace).substr(0, length);
    const auto read = parse_chakra_traces(std::vector<ChakraFile>{{"t", part}}, {});
    // Between two messages nothing shows that more were there.
    if (read.ok()) {
      ++shorter;
      CHECK(read.value.ops.size() < 2);
    } else {
      CHECK_THAT(read.errors.at(0), Catch::Matchers::StartsWith("t: byte "));
    }
  }
  CHECK(shorter == 2);
}

TEST_CASE("Chakra: integers of every kind, packed and single dependencies", "[workload]") {
  const auto size_of = [](const std::string& value) {
    const auto read =
        one_trace(node(1, 7, attribute("comm_type", number(9, 2)) + attribute("comm_size", value)));
    REQUIRE(read.errors == Lines{});
    CHECK(read.value.ops.at(0).op == CollectiveOp::all_gather);
    return read.value.ops.at(0).bytes;
  };
  for (const unsigned field : {7U, 9U, 11U, 13U}) CHECK(size_of(number(field, 300)) == 300);
  for (const unsigned field : {15U, 17U}) CHECK(size_of(number(field, 600)) == 300);  // zigzag
  const std::string four("\x2c\x01\0\0", 4);
  for (const unsigned field : {19U, 23U}) CHECK(size_of(varint(field << 3 | 5) + four) == 300);
  const std::string eight = four + std::string(4, '\0');
  for (const unsigned field : {21U, 25U}) CHECK(size_of(varint(field << 3 | 1) + eight) == 300);

  const auto read = one_trace(node(5, 4, number(7, 2)) + node(6, 1) + node(7, 2) +
                              node(8, 3,
                                   number(4, 5) + number(4, 6) + number(5, 5) +
                                       bytes(5, varint(7) + varint(5)) + bytes(99, "new")));
  REQUIRE(read.errors == Lines{});
  CHECK(read.value.waits == Waits{{3, 0}, {3, 1}, {3, 2}});
  CHECK(read.value.ops[0].duration == picos_from_micros(2));
}

TEST_CASE("Chakra: dependencies forward, on nothing and in a circle", "[workload]") {
  const auto forward = one_trace(node(1, 4, number(5, 2)) + node(2, 4));
  REQUIRE(forward.errors == Lines{});
  CHECK(forward.value.waits == Waits{{1, 0}});

  const std::string missing = node(1, 4, number(5, 9) + number(4, 8)) + node(2, 4, number(5, 1));
  CHECK(trace_errors(missing) == Lines{"t: node 1: waits for node 9: expected a node of the file",
                                       "t: node 1: waits for node 8: expected a node of the file"});
  const auto dropped = one_trace(missing, {.drop_missing = true});
  REQUIRE(dropped.errors == Lines{});
  CHECK(dropped.warnings == Lines{"2 dependencies on nodes that are not in the file are dropped"});
  CHECK(dropped.value.waits == Waits{{1, 0}});

  const std::string circle = node(1, 4, number(5, 3)) + node(2, 4, number(5, 1)) +
                             node(3, 4, number(5, 2)) + node(4, 4, number(5, 4));
  CHECK(trace_errors(circle) == Lines{"t: node 1: waits for itself, by way of node 3"});
  CHECK(trace_errors(node(4, 4, number(5, 4))) ==
        Lines{"t: node 4: waits for itself, by way of node 4"});
  const auto broken = one_trace(circle, {.drop_circular = true});
  REQUIRE(broken.errors == Lines{});
  CHECK(broken.warnings == Lines{"2 dependencies that lead in a circle are dropped"});
  CHECK(broken.value.waits == Waits{{1, 0}, {2, 1}});
}

TEST_CASE("Chakra: launches, barriers and nodes without a duration are counted", "[workload]") {
  const auto read =
      one_trace(node(1, 7, number(7, 5)) + node(2, 4, attribute("num_ops", number(9, 3))) +
                node(3, 7, attribute("comm_type", number(9, 9))) + collective(4, 8));
  REQUIRE(read.errors == Lines{});
  CHECK(read.warnings ==
        Lines{"1 collective nodes without comm_type are computations of their duration",
              "1 barriers are all-reduces of 1 byte",
              "1 nodes give num_ops and no duration: they take no time here"});
  CHECK(read.value.ops[0].kind == JobOpKind::compute);
  CHECK(read.value.ops[0].duration == picos_from_micros(5));
  CHECK(read.value.ops[2].op == CollectiveOp::all_reduce);
  CHECK(read.value.ops[2].bytes == 1);
  CHECK(read.value.ops[3].op == CollectiveOp::reduce_scatter);
}

TEST_CASE("Chakra: groups", "[workload]") {
  const auto group = [](const std::string& value) { return attribute("pg_name", value); };
  const std::string named = kMetadata + collective(1, 0, group(bytes(29, "dp")));
  const std::string all = kMetadata + collective(1, 0, group(bytes(29, "")));
  const std::vector<ChakraFile> traces = {{"t.0", named}, {"t.1", all}, {"t.2", named}};
  const auto of = [&](std::string_view groups) {
    return parse_chakra_traces(traces, {"g.json", groups});
  };
  const auto read = of(R"({"tp": [1], "dp": [2, 0]})");
  REQUIRE(read.errors == Lines{});
  REQUIRE(read.value.ops.size() == 3);
  const auto& groups = read.value.groups;
  CHECK(groups.at(read.value.ops[0].group) == std::vector<std::uint32_t>{2, 0});
  CHECK(groups.at(read.value.ops[1].group) == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(read.value.ops[2].group == read.value.ops[0].group);

  const Lines not_in = of(R"({"dp": [2, 1]})").errors;
  REQUIRE(not_in.size() == 1);
  CHECK_THAT(not_in[0], Catch::Matchers::EndsWith(
                            "node 1: pg_name = \"dp\": expected a group with rank 0 in it"));
  const Lines unknown = of("").errors;
  REQUIRE(unknown.size() == 2);
  CHECK_THAT(unknown[0], Catch::Matchers::EndsWith("pg_name = \"dp\": expected a group of a file "
                                                   "of groups"));
  CHECK(of(R"({"dp": [3]})").errors ==
        Lines{"g.json: \"dp\": entry 1: expected a rank in [0 .. 2]"});
  CHECK(of(R"({"dp": [0, 0]})").errors == Lines{"g.json: \"dp\": rank 0 is given twice"});
  CHECK(of(R"({"dp": []})").errors == Lines{"g.json: \"dp\": expected a list of ranks"});
  CHECK(of(R"({"dp": [0, 2], "dp": [2, 0]})").errors == Lines{"g.json: \"dp\" is given twice"});
  CHECK(of("[]").errors == Lines{"g.json: expected an object {\"group\": [ranks]}"});
  CHECK(of("{\"dp\": [0,}").errors == Lines{"g.json: byte 11: this is not JSON"});
  const std::string dims = attribute("involved_dim", bytes(28, number(1, 1) + number(1, 0)));
  CHECK_THAT(trace_errors(collective(1, 0, dims)).at(0),
             Catch::Matchers::EndsWith("involved_dim leaves a dimension out: expected pg_name"));
  const std::string every = attribute("involved_dim", bytes(28, number(1, 1)));
  CHECK(trace_errors(collective(1, 0, every)).empty());
}

TEST_CASE("Chakra: what is wrong is named with its byte and node", "[workload]") {
  REQUIRE(kMetadata.size() == 6);
  const std::string at = "t: byte 7: node 1: ";
  CHECK(trace_errors(collective(1, 3)) ==
        Lines{at + "comm_type = 3, gather or scatter: expected 0, 1, 2 or 5 to 9"});
  CHECK(trace_errors(collective(1, 10)) ==
        Lines{at + "comm_type = 10: expected 0, 1, 2 or 5 to 9"});
  CHECK(trace_errors(node(1, 8)) == Lines{at + "type 8: expected 1 to 7"});
  CHECK(trace_errors(framed(number(1, 1))) == Lines{at + "type 0: expected 1 to 7"});
  CHECK(trace_errors(node(1, 7, attribute("comm_type", number(9, 0)))) ==
        Lines{at + "comm_size: expected 0 to 1000000000000000 bytes"});
  CHECK(trace_errors(node(1, 4, number(7, 1'000'000'000'001))) ==
        Lines{at + "duration_micros = 1000000000001: expected at most 1000000000000"});
  const auto send = [](std::uint64_t dst, const std::string& rest) {
    return node(
        1, 5, attribute("comm_dst", number(7, dst)) + attribute("comm_size", number(9, 1)) + rest);
  };
  CHECK(trace_errors(send(0, "")).empty());
  CHECK(trace_errors(send(1, "")) == Lines{at + "comm_dst = 1: expected a rank in [0 .. 0]"});
  CHECK(trace_errors(send(0, attribute("comm_src", number(7, 1)))) ==
        Lines{at + "comm_src = 1: expected 0, the rank of the file"});
  CHECK(trace_errors(send(0, attribute("comm_tag", number(7, ~std::uint64_t{0})))) ==
        Lines{at + "comm_tag = -1: expected 0 or more, of 31 bits"});
  CHECK(trace_errors(node(1, 6)) == Lines{at + "comm_src: expected a rank in [0 .. 0]"});
  CHECK(trace_errors(node(1, 4) + node(1, 4)) ==
        Lines{"t: byte 12: node 1: another node has this id"});

  CHECK(trace_errors(framed(number(2, 5))) ==
        Lines{"t: byte 7: field 2 has wire type 0: expected 2"});
  CHECK(trace_errors(framed(varint(1 << 3 | 3))) ==
        Lines{"t: byte 7: wire type 3: expected 0, 1, 2 or 5"});
  CHECK(trace_errors(framed(varint(0))) == Lines{"t: byte 7: field 0: expected 1 to 536870911"});
  CHECK(trace_errors(framed(varint(8) + std::string(10, '\xff'))) ==
        Lines{"t: byte 8: a number of more than 64 bits"});
  CHECK(trace_errors(node(1, 4, attribute("comm_type", bytes(29, "0")))).size() == 1);
  CHECK(trace_errors("\x05") == Lines{"t: byte 6: length 5: 0 bytes are left"});
  CHECK(parse_chakra_traces(std::vector<ChakraFile>{{"t", ""}}, {}).errors ==
        Lines{"t: byte 0: the file is empty: expected an execution trace of Chakra"});
  CHECK(parse_chakra_traces({}, {}).errors == Lines{"0 traces: expected 1 to 524288"});
  CHECK(read_chakra_traces(std::vector<std::string>{chakra_path("none")}).errors.size() == 1);
  CHECK(find_chakra_traces(chakra_path("none")).errors.size() == 1);
}

TEST_CASE("Chakra: a rank whose file is not there is named", "[workload]") {
  std::string folder = (std::filesystem::temp_directory_path() / "chakra_XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string prefix = folder + "/job";
  for (const char* const name : {".0.et", ".1.et", ".3.et", ".x.et", ".2.txt", "2.et"}) {
    std::ofstream(prefix + name) << kMetadata;
  }
  CHECK(find_chakra_traces(prefix).errors ==
        Lines{prefix + ".3.et: expected " + prefix + ".2.et, too"});
  std::ofstream(prefix + ".2.et") << kMetadata;
  const auto files = find_chakra_traces(prefix);
  CHECK(files.errors == Lines{});
  CHECK(files.value ==
        Lines{prefix + ".0.et", prefix + ".1.et", prefix + ".2.et", prefix + ".3.et"});
  CHECK(read_chakra_traces(files.value).value.ranks == 4);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace paceline::workload

// [workload.job]: defaults, values, and what does not fit together.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/config/scenario/scenario_reader.h"
#include "tests/unit/config/test_algorithms.h"

namespace paceline::config {
namespace {

using Complaints = std::vector<std::string>;

// 16 hosts; the first line of the table is line 6.
Read<Scenario> read_job(const std::string& table) {
  return read_scenario_text(
      "[fabric]\nhosts = 16\n[workload]\nkind = \"job\"\n[workload.job]\n" + table, "s.toml",
      "folder", {test_algorithms(), {}});
}

Complaints complaints_of(const std::string& table) { return read_job(table).errors; }

TEST_CASE("keys of jobs: defaults", "[config]") {
  const auto read = read_job("");
  REQUIRE(read.errors == Complaints{});
  CHECK(read.value.workload.kind == "job");
  const JobConfig& job = read.value.workload.job;
  CHECK(job.format == "collective");
  CHECK(job.file.empty());
  CHECK(job.groups_file.empty());
  CHECK(job.operation == "all_reduce");
  CHECK(job.bytes == 67'108'864);
  CHECK(job.iterations == 1);
  CHECK(job.compute == Picos{0});
  CHECK(job.compute_scale == 1);
  CHECK(job.jitter == 0);
  CHECK(job.straggler == 0);
  CHECK(job.straggler_factor == 1);
  for (const std::string* schedule : {&job.all_reduce, &job.reduce_scatter, &job.all_gather,
                                      &job.all_to_all, &job.broadcast, &job.reduce}) {
    CHECK(schedule->empty());
  }
  CHECK(job.schedule_file.empty());
  CHECK(job.chunk_bytes == 1'048'576);
  CHECK(job.channels == 1);
  CHECK(job.window == 8);
  CHECK(job.queue_pairs == 1);
  CHECK_FALSE(job.clear_to_send);
  CHECK(job.step_overhead == Picos{0});
  CHECK(job.aggregation == 0);
  CHECK(job.peers == 0);
  CHECK(job.skew == 0);
}

TEST_CASE("keys of jobs: each one reaches its field", "[config]") {
  const auto read = read_job(R"(operation = "all_to_all"
bytes = "3MB"
iterations = 5
compute = "2us"
compute_scale = 0.5
jitter = 0.25
straggler = 15
straggler_factor = 1.5
all_reduce = "double_tree"
reduce_scatter = "pat"
all_gather = "bruck"
all_to_all = "window"
broadcast = "binomial"
reduce = "chain"
chunk_bytes = "64KiB"
channels = 4
window = 3
queue_pairs = 2
clear_to_send = true
step_overhead = "4.2us"
aggregation = 8
peers = 7
skew = 1.25
)");
  REQUIRE(read.errors == Complaints{});
  const JobConfig& job = read.value.workload.job;
  CHECK(job.operation == "all_to_all");
  CHECK(job.bytes == 3'000'000);
  CHECK(job.iterations == 5);
  CHECK(job.compute == Picos{2'000'000});
  CHECK(job.compute_scale == 0.5);
  CHECK(job.jitter == 0.25);
  CHECK(job.straggler == 15);
  CHECK(job.straggler_factor == 1.5);
  CHECK(job.all_reduce == "double_tree");
  CHECK(job.reduce_scatter == "pat");
  CHECK(job.all_gather == "bruck");
  CHECK(job.all_to_all == "window");
  CHECK(job.broadcast == "binomial");
  CHECK(job.reduce == "chain");
  CHECK(job.chunk_bytes == 65'536);
  CHECK(job.channels == 4);
  CHECK(job.window == 3);
  CHECK(job.queue_pairs == 2);
  CHECK(job.clear_to_send);
  CHECK(job.step_overhead == Picos{4'200'000});
  CHECK(job.aggregation == 8);
  CHECK(job.peers == 7);
  CHECK(job.skew == 1.25);
}

TEST_CASE("keys of jobs: skew is for all-to-alls of a collective or a model", "[config]") {
  CHECK(complaints_of("skew = 1\n") ==
        Complaints{"s.toml:6:8: workload.job.skew does nothing with workload.job.operation = "
                   "\"all_reduce\"; it is for all_to_all"});
  CHECK(complaints_of("operation = \"all_to_all\"\nskew = 8\n") == Complaints{});
  CHECK(complaints_of("operation = \"all_to_all\"\nskew = 8.5\n") ==
        Complaints{"s.toml:7:8: workload.job.skew = 8.5: out of range, allowed is [0 .. 8]"});
  const std::string model = "format = \"model\"\nskew = 1\n[workload.job.model]\n";
  CHECK(complaints_of(model + "ep = 2\n") == Complaints{});
  CHECK(complaints_of(model + "ep = 1\n") ==
        Complaints{"s.toml:7:8: workload.job.skew does nothing with workload.job.model.ep = 1; it "
                   "is for 2 or more"});
  for (const std::string format : {"simai", "goal", "chakra", "inference"}) {
    CHECK(complaints_of("format = \"" + format + "\"\nfile = \"a\"\nskew = 1\n") ==
          Complaints{"s.toml:8:8: workload.job.skew does nothing with workload.job.format = \"" +
                     format + "\""});
  }
}

TEST_CASE("keys of jobs: files are looked for beside the scenario", "[config]") {
  const auto read = read_job("format = \"chakra\"\nfile = \"t/a\"\ngroups_file = \"g.json\"\n");
  REQUIRE(read.errors == Complaints{});
  CHECK(read.value.workload.job.file == "folder/t/a");
  CHECK(read.value.workload.job.groups_file == "folder/g.json");
}

TEST_CASE("keys of jobs: values out of range", "[config]") {
  const auto range = [](const std::string& key, const std::string& value,
                        const std::string& allowed) {
    CAPTURE(key, value);
    CHECK(complaints_of(key + " = " + value + "\n") ==
          Complaints{"s.toml:6:" + std::to_string(key.size() + 4) + ": workload.job." + key +
                     " = " + value + ": out of range, allowed is " + allowed});
  };
  range("iterations", "0", "[1 .. 1000000]");
  range("iterations", "1000001", "[1 .. 1000000]");
  range("compute_scale", "-1", "[0 .. 1000000]");
  range("jitter", "2.5", "[0 .. 2]");
  range("straggler_factor", "0.001", "[0.01 .. 1000]");
  range("channels", "0", "[1 .. 64]");
  range("channels", "65", "[1 .. 64]");
  range("window", "0", "[1 .. 4096]");
  range("queue_pairs", "65", "[1 .. 64]");
}

TEST_CASE("keys of jobs: sizes and times out of range, and words that are not allowed",
          "[config]") {
  CHECK(complaints_of("bytes = \"0B\"\n") ==
        Complaints{
            "s.toml:6:9: workload.job.bytes = \"0B\": out of range, allowed is [1B .. 1000TB]"});
  CHECK(
      complaints_of("bytes = \"1001TB\"\n") ==
      Complaints{
          "s.toml:6:9: workload.job.bytes = \"1001TB\": out of range, allowed is [1B .. 1000TB]"});
  CHECK(complaints_of("chunk_bytes = \"2GiB\"\n") ==
        Complaints{"s.toml:6:15: workload.job.chunk_bytes = \"2GiB\": out of range, allowed is [1 "
                   ".. 1GiB]"});
  CHECK(complaints_of("compute = \"1001s\"\n") ==
        Complaints{"s.toml:6:11: workload.job.compute = \"1001s\": out of range, allowed is [0ps "
                   ".. 1000s]"});
  CHECK(
      complaints_of("step_overhead = \"2s\"\n") ==
      Complaints{"s.toml:6:17: workload.job.step_overhead = \"2s\": out of range, allowed is [0ps "
                 ".. 1s]"});
  CHECK(complaints_of("operation = \"gather\"\n") ==
        Complaints{
            "s.toml:6:13: workload.job.operation = \"gather\": allowed is \"all_reduce\", "
            "\"reduce_scatter\", \"all_gather\", \"all_to_all\", \"broadcast\" or \"reduce\""});
  CHECK(complaints_of("format = \"nccl\"\n") ==
        Complaints{"s.toml:6:10: workload.job.format = \"nccl\": allowed is \"collective\", "
                   "\"simai\", \"goal\", \"chakra\", \"model\" or \"inference\""});
  CHECK(complaints_of("clear_to_send = 1\n") ==
        Complaints{"s.toml:6:17: workload.job.clear_to_send = 1: expected true or false"});
  const Complaints unknown = complaints_of("windows = 1\n");
  CHECK(unknown == Complaints{"s.toml:6:1: unknown key \"windows\" in [workload.job]; did you mean "
                              "\"window\"?"});
}

TEST_CASE("keys of jobs: a format needs its file, and a file its format", "[config]") {
  CHECK(
      complaints_of("file = \"a.goal\"\n") ==
      Complaints{"s.toml:6:8: workload.job.file needs workload.job.format, which says what it is"});
  for (const std::string format : {"simai", "goal", "chakra"}) {
    CHECK(complaints_of("format = \"" + format + "\"\n") ==
          Complaints{"s.toml:6:10: workload.job.format = \"" + format +
                     "\" needs workload.job.file"});
  }
  CHECK(complaints_of("format = \"goal\"\nfile = \"a\"\ngroups_file = \"b\"\n") ==
        Complaints{"s.toml:8:15: workload.job.groups_file is of workload.job.format = \"chakra\""});
  CHECK(complaints_of("groups_file = \"b\"\n") ==
        Complaints{"s.toml:6:15: workload.job.groups_file is of workload.job.format = \"chakra\""});
  CHECK(
      complaints_of("format = \"simai\"\nfile = \"a\"\noperation = \"reduce\"\nbytes = \"8B\"\n"
                    "compute = \"1us\"\niterations = 2\n") ==
      Complaints{
          "s.toml:8:13: workload.job.operation does nothing with workload.job.format = \"simai\"",
          "s.toml:9:9: workload.job.bytes does nothing with workload.job.format = \"simai\"",
          "s.toml:10:11: workload.job.compute does nothing with workload.job.format = \"simai\""});
  for (const std::string format : {"goal", "chakra"}) {
    CHECK(complaints_of("format = \"" + format + "\"\nfile = \"a\"\niterations = 2\n") ==
          Complaints{"s.toml:8:14: workload.job.iterations does nothing with workload.job.format = "
                     "\"" +
                     format + "\""});
  }
}

TEST_CASE("keys of jobs: what the fabric or the algorithm does not allow", "[config]") {
  CHECK(complaints_of("straggler = 16\n") ==
        Complaints{"s.toml:6:13: workload.job.straggler = 16: no such rank, allowed is 0 .. 15"});
  CHECK(complaints_of("aggregation = 3\n") ==
        Complaints{"s.toml:6:15: workload.job.aggregation = 3: allowed are 0 and powers of two"});
}

TEST_CASE("keys of jobs: storage besides", "[config]") {
  const auto read = read_job(
      "straggler = 11\n[workload.background]\nkind = \"dataset\"\nbytes = \"3MB\"\nstorage_nics = "
      "4\n"
      "message_bytes = \"64KiB\"\noutstanding = 2\ntraffic_class = 5\nstart = \"7us\"\n");
  REQUIRE(read.errors == Complaints{});
  const BackgroundConfig& background = read.value.workload.background;
  CHECK(background.kind == "dataset");
  CHECK(background.bytes == 3'000'000);
  CHECK(background.storage_nics == 4);
  CHECK(background.message_bytes == 65'536);
  CHECK(background.outstanding == 2);
  CHECK(background.traffic_class == 5);
  CHECK(background.start == picos_from_micros(7));
  CHECK(
      complaints_of("[workload.background]\nkind = \"checkpoint\"\nstorage_nics = 15\n") ==
      Complaints{"s.toml:8:16: workload.background.storage_nics = 15: of 16 NICs at least two must "
                 "be left for ranks"});
  CHECK(complaints_of("straggler = 8\n[workload.background]\nkind = \"checkpoint\"\n") ==
        Complaints{"s.toml:6:13: workload.job.straggler = 8: no such rank, allowed is 0 .. 7"});
}

TEST_CASE("keys of transport: planned source ports need one path a connection", "[config]") {
  const auto complaints = [](const std::string& more) {
    return read_scenario_text("[transport]\nsource_ports = \"planned\"\n" + more, "s.toml",
                              "folder", {test_algorithms(), {}})
        .errors;
  };
  CHECK(complaints("") == Complaints{});
  const Complaints wrong{
      "s.toml:2:16: transport.source_ports = \"planned\" needs one path a connection: "
      "transport.multipath = \"none\", fabric.load_balance = \"ecmp\", fabric.ports = 1"};
  CHECK(complaints("reliability = \"selective\"\nmultipath = \"packet\"\n") == wrong);
  CHECK(complaints("[fabric]\nload_balance = \"spray\"\n") == wrong);
}

TEST_CASE("keys of jobs: they are of no other kind of workload", "[config]") {
  CHECK(read_scenario_text("[workload]\nkind = \"permutation\"\n[workload.job]\nwindow = 2\n",
                           "s.toml", "folder", {test_algorithms(), {}})
            .errors == Complaints{"s.toml:4:10: workload.job.window does nothing with "
                                  "workload.kind = \"permutation\"; it is for job"});
  CHECK(read_scenario_text("[workload]\nkind = \"job\"\nfan_in = 3\n", "s.toml", "folder",
                           {test_algorithms(), {}})
            .errors == Complaints{"s.toml:3:10: workload.fan_in does nothing with workload.kind = "
                                  "\"job\"; it is for incast open_loop"});
}

}  // namespace
}  // namespace paceline::config

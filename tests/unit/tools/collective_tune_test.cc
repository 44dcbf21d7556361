// `paceline collective tune` and `paceline collective explain`.

#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/tools/command.h"

namespace paceline::tools::collective_tune_test {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;

Outcome tune(const Folder& folder, Strings more) {
  Strings arguments{"collective",   "tune", "--set",         "fabric.hosts=6",
                    "--iterations", "1",    "--evaluations", "10"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return paceline_command(folder, arguments);
}

TEST_CASE("paceline collective tune: a table, NCCL's table and all as JSON", "[cli][jobs]") {
  const Folder folder;
  const Outcome outcome = tune(folder, {"--operation", "all_reduce,broadcast", "--sizes",
                                        "4KiB..256KiB step x8", "-o", "t.csv", "--json", "t.json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(folder.list() == Strings{"t.csv", "t.json"});
  const Json json = Json::parse(folder.read("t.json"));
  REQUIRE(json["cells"].size() == 6);
  CHECK(json["ranks"] == 6);
  const std::uint64_t sizes[] = {4'096, 32'768, 262'144};
  for (std::size_t i = 0; i < 6; ++i) {
    const Json& cell = json["cells"][i];
    CAPTURE(i);
    CHECK(cell["operation"] == (i < 3 ? "all_reduce" : "broadcast"));
    CHECK(cell["bytes"] == sizes[i % 3]);
    const double best = cell["choice"]["time_us"];
    CHECK(best <= cell["default"]["time_us"].get<double>());
    CHECK(best <= cell["choice_of_nccl"]["time_us"].get<double>());
    CHECK(cell["default"]["schedule"] == (i < 3 ? "ring" : "chain"));
    CHECK_THAT(outcome.out, Contains(cell["choice"]["schedule"].get<std::string>()));
  }
  // Every size of an operation has one line: ranges begin at 0, touch and end at the largest.
  std::istringstream lines(folder.read("t.csv"));
  std::string expected_first = "0";
  int tables = 0;
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.size() <= 255);
    if (line[0] == '#') continue;
    Strings fields;
    std::istringstream parts(line);
    for (std::string field; std::getline(parts, field, ',');) fields.push_back(field);
    CAPTURE(line);
    REQUIRE(fields.size() == 8);
    CHECK(fields[1] == expected_first);
    const bool last = fields[2] == "18446744073709551615";
    tables += last;
    expected_first = last ? "0" : std::to_string(std::stoull(fields[2]) + 1);
    CHECK((fields[3] == "ring" || fields[3] == "tree"));
    CHECK(fields[4] == "simple");
    CHECK(fields[6] == "6");
    CHECK(fields[7] == "6");
  }
  CHECK(tables == 2);
}

TEST_CASE("paceline collective explain: estimates, times and the reason", "[cli][jobs]") {
  const Folder folder;
  const Outcome outcome =
      paceline_command(folder, {"collective", "explain", "--set", "fabric.hosts=16", "--operation",
                                "all_reduce", "--size", "4KiB"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("all_reduce of 4KiB"));
  // 2 (16 - 1) rounds of a ring; log2 16 of recursive doubling, the least there is.
  CHECK_THAT(outcome.out, Contains("recursive_doubling needs 4 rounds between NICs where ring "
                                   "needs 30, and at 4KiB rounds are what costs."));
}

TEST_CASE("paceline collective tune: what is refused", "[cli][jobs]") {
  const Folder folder;
  const auto refused = [&folder](const Strings& more, const std::string& text) {
    const Outcome outcome = tune(folder, more);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Contains(text));
  };
  refused({"--operation", "all_reduces"}, "--operation \"all_reduces\": expected all_reduce, ");
  refused({"--operation", "reduce,reduce"}, "--operation reduce: named twice");
  refused({"--sizes", "1MiB..1KiB"}, "sizes \"1MiB..1KiB\": expected sizes of 1 B to 1000 TB");
  refused({"--operation", "all_to_all", "-o", "t.csv"},
          "--operation all_to_all: NCCL's tuner does not choose it; without -o it is allowed");
  refused({"-o", "none/t.csv"}, "none/t.csv: cannot be written");
  refused({"--set", "workload.job.format=goal", "--set", "workload.job.file=a"},
          "workload.job.format: expected \"collective\"");
  CHECK(folder.list().empty());
}

TEST_CASE("paceline collective tune: interrupted, it writes nothing", "[cli][jobs]") {
  const Folder folder;
  Command command(folder, {"collective", "tune", "--set", "fabric.hosts=32", "--sizes",
                           "16MiB..64MiB", "-o", "t.csv", "--json", "t.json"});
  while (command.running() && command.err().empty()) ::usleep(5000);
  command.signal(SIGINT);
  const Outcome outcome = command.wait();
  CHECK(outcome.code == 130);
  CHECK_THAT(outcome.err, Contains("interrupted: nothing written"));
  CHECK(outcome.out.empty());
  CHECK(folder.list().empty());
}

}  // namespace
}  // namespace paceline::tools::collective_tune_test

// `paceline job`: figures in JSON, what is refused, and files that other commands read.

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/tools/command.h"

namespace paceline::tools {
namespace {

using Catch::Matchers::Contains;
using JobWords = std::vector<std::string>;

Outcome traffic(const Folder& folder, JobWords words) {
  words.insert(words.begin(), {"job", "traffic"});
  return paceline_command(folder, words);
}

// A published run: gradients are 4.10 GB of a rank's step, 783 PB in all go through NICs, for 4.25
// hours of one of 400 Gb/s.
TEST_CASE("job traffic: a run with its totals", "[cli]") {
  const Folder folder;
  const Outcome outcome = traffic(folder, {"--layers",
                                           "80",
                                           "--parameters",
                                           "70e9",
                                           "--hidden",
                                           "8192",
                                           "--tp",
                                           "8",
                                           "--pp",
                                           "8",
                                           "--dp",
                                           "16",
                                           "--sequence-parallel",
                                           "--step-tokens",
                                           "876269.8848",
                                           "--steps",
                                           "178027.34375",
                                           "--rate",
                                           "400 Gb/s",
                                           "--json",
                                           "t.json"});
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Contains("4.102 GB") && Contains("PB of it through NICs, 4.251 h"));
  const auto json = nlohmann::json::parse(folder.read("t.json"));
  CHECK(json.at("ranks") == 1024);
  const auto& rows = json.at("dimensions");
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].at("dimension") == "data");
  CHECK(rows[0].at("nic_bytes") == rows[0].at("bytes"));
  CHECK(rows[1].at("dimension") == "tensor");
  CHECK(rows[1].at("nic_bytes") == 0);
  CHECK(json.at("run").at("nic_bytes").get<double>() == Approx(783e15).margin(0.5e15));
  CHECK(json.at("nic_seconds").get<double>() ==
        Approx(json.at("nic_bytes").get<double>() * 8 / 400e9));
}

TEST_CASE("job traffic: what is refused", "[cli]") {
  struct Case {
    JobWords words;
    std::string text;
  };
  const Case cases[] = {
      {{"--tp", "8"}, "no model: give --model, or --layers, --parameters and --hidden"},
      {{"--model", "llama-7b", "--pp", "33"}, "--pp 33 of --chunks 1: expected at most 32 parts"},
      {{"--model", "llama-7b", "--dp", "8", "--ep", "2"}, "--ep 2: expected 1: the model has no"},
      {{"--model", "deepseek-v3", "--dp", "24", "--ep", "16"},
       "--ep 16: expected a divisor of --dp 24 and of the 256 experts"},
      {{"--model", "deepseek-v3", "--cp", "2"}, "--cp 2: expected --kv-hidden"},
      {{"--model", "llama-7b", "--chunks", "2"}, "--chunks 2: expected a pipeline"},
      {{"--model", "llama-7b", "--sequence-parallel"}, "expected tensor-parallel ranks"},
      {{"--model", "llama-7b", "--tp", "2", "--gather-again"}, "expected --sequence-parallel"},
      {{"--model", "llama-7b", "--free-weights"}, "--free-weights: expected --zero 3"},
      {{"--model", "llama-7b", "--tokens", "many"}, "--tokens many: "},
      {{"--model", "llama-7b", "--rate", "fast"}, "--rate fast: expected a rate such as"},
      {{"--model", "llama-7b", "--experts", "8"}, "expected all of --experts, --top-k and"},
      {{"--model", "llama-7b", "--dp", "1048576", "--tp", "2"}, "expected at most 1048576"},
      {{"--model", "llama-7b", "--cp", "2", "--accounting", "naive-mesh"},
       "--accounting naive-mesh: --cp: allowed are --tp, --pp, --dp"},
      {{"--model", "llama-7b", "--json", "none/t.json"}, "there is no folder none"},
  };
  for (const Case& c : cases) {
    const Folder folder;
    const Outcome outcome = traffic(folder, c.words);
    CAPTURE(c.words, outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.out == "");
    CHECK_THAT(outcome.err, Contains(c.text));
    CHECK(folder.list().empty());
  }
}

const std::string kRailsScenario = R"(schema = 1
name = "rails"
[fabric]
hosts = 8
nics = 2
[cc]
algorithm = "dcqcn"
[workload]
)";

// The same messages between the same NICs, for which a fabric of two rails is the test.
TEST_CASE("job export: what is written is read back by scenarios", "[cli]") {
  const Folder folder;
  folder.write("s.toml", kRailsScenario + "kind = \"permutation\"\nmessage_bytes = \"20kB\"\n");
  const auto run = [&](JobWords words) {
    const Outcome outcome = paceline_command(folder, words);
    CAPTURE(words, outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  const auto flows = [&](const std::string& workload) {
    folder.write("back.toml", kRailsScenario + workload);
    run({"emulate", "back.toml", "-q", "--flows-out", "f.csv"});
    return folder.read("f.csv");
  };
  const std::string direct = flows("kind = \"permutation\"\nmessage_bytes = \"20kB\"\n");
  for (const std::string format : {"cm", "goal", "hpcc"}) {
    CAPTURE(format);
    CHECK_THAT(run({"job", "export", "s.toml", "--format", format, "--out", "out." + format}),
               Contains("out." + format + ": 8 messages, 160 kB"));
  }
  CHECK(flows("kind = \"htsim\"\nmatrix_file = \"out.cm\"\nstart_unit = \"ps\"\n") == direct);
  CHECK(flows("kind = \"flows\"\nflows_file = \"out.hpcc\"\n") == direct);
  folder.write("back.toml", kRailsScenario +
                                "kind = \"job\"\njob = { format = \"goal\", file = "
                                "\"out.goal\" }\n");
  run({"emulate", "back.toml", "-q", "--flows-out", "f.csv"});
  CHECK(std::count(direct.begin(), direct.end(), '\n') == 9);
}

TEST_CASE("job export: what is refused", "[cli]") {
  const Folder folder;
  folder.write("s.toml",
               kRailsScenario + "kind = \"job\"\njob = { bytes = \"80kB\", compute = \"9us\" }\n");
  const auto refused = [&](JobWords words) {
    words.insert(words.begin(), {"job", "export", "s.toml", "--out", "out"});
    const Outcome outcome = paceline_command(folder, words);
    CHECK(outcome.code == 2);
    CHECK(folder.list() == JobWords{"s.toml"});
    return outcome.err;
  };
  CHECK_THAT(refused({"--format", "cm"}), Contains("--drop-computing leaves them out"));
  CHECK_THAT(refused({"--format", "hpcc"}),
             Contains("--drop-computing") && Contains("--drop-waits"));
  CHECK_THAT(refused({"--format", "goal", "--drop-computing"}),
             Contains("allowed with cm and hpcc"));
  CHECK_THAT(refused({"--format", "goal", "--drop-waits"}), Contains("allowed with cm and hpcc"));
  CHECK_THAT(refused({"--format", "xml"}), Contains("xml"));
}

}  // namespace
}  // namespace paceline::tools

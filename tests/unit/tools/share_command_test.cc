// Shares of a command's runs: planned, executed apart, gathered to the bytes of one machine.

#include <unistd.h>
#include <catch2/catch.hpp>
#include <csignal>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/tools/command.h"
#include "tests/unit/tools/tiny_experiment.h"

namespace paceline::tools {
namespace {

using Catch::Matchers::Contains;
using Strings = std::vector<std::string>;

const std::string kShared(kTinyExperiment);

const std::string kSweep = R"(schema = 1
name = "small"
[fabric]
hosts = 5
[workload]
kind = "incast"
fan_in = 4
message_bytes = "100kB"
start_jitter = "1us"
[sweep]
repetitions = 2
[sweep.grid]
cc.algorithm = ["dcqcn", "cadence"]
[sweep.latin]
points = 3
fabric.rate = "25Gb/s:400Gb/s log"
fabric.delay = "500ns:2us"
[[sweep.list]]
workload.fan_in = 2
[[sweep.list]]
workload.fan_in = 4
fabric.buffer = "1MB"
)";

struct ShareTest {
  Folder folder;

  Outcome run(const Strings& words) const {
    Outcome outcome = paceline_command(folder, words);
    UNSCOPED_INFO(outcome.err);
    return outcome;
  }
  void share(Strings words, int part, int of) const {
    words.insert(words.end(), {"--share", std::to_string(part) + "/" + std::to_string(of),
                               "--records", "kept", "-q", "--jobs", "1"});
    REQUIRE(run(words).code == 0);
  }
};

TEST_CASE("shares: gathered, an experiment has the bytes of one machine", "[cli]") {
  const ShareTest test;
  test.folder.write("tiny.toml", kShared);
  const Outcome one = test.run({"ab", "tiny.toml", "--jobs", "1", "--out", "1.json"});
  REQUIRE(one.code == 0);
  for (const int part : {4, 1, 5, 2}) test.share({"ab", "tiny.toml"}, part, 5);
  // What is missing is named, with the command that runs it; nothing is written.
  const Outcome early = test.run({"gather", "tiny.toml", "kept"});
  CHECK(early.code == 1);
  CHECK_THAT(early.err, Contains("kept: 2 of 12 runs are missing, of 1 of 5 shares") &&
                            Contains("paceline ab tiny.toml --share 3/5 --records kept\n") &&
                            Contains("sbatch --array=3 SCRIPT") &&
                            Contains("paceline ab tiny.toml --share 1/1 --records kept\n"));
  CHECK(test.folder.list() == Strings{"1.json", "1.report.html", "kept", "tiny.toml"});
  // This machine does what the others have left.
  test.share({"ab", "tiny.toml"}, 1, 1);
  CHECK(test.folder.read("kept/1-of-1.jsonl").find('\n') != std::string::npos);
  REQUIRE(test.run({"gather", "tiny.toml", "kept", "--", "--out", "2.json"}).code == 0);
  CHECK(test.folder.read("2.json") == test.folder.read("1.json"));
  const auto without_name = [](std::string page, const std::string& name) {
    for (std::size_t at = page.find(name); at != std::string::npos; at = page.find(name)) {
      page.erase(at, name.size());
    }
    return page;
  };
  CHECK(without_name(test.folder.read("2.report.html"), "2.json") ==
        without_name(test.folder.read("1.report.html"), "1.json"));
  // Parts of another plan.
  const Outcome other = test.run({"gather", "tiny.toml", "kept", "--set", "seed=4"});
  CHECK(other.code == 2);
  CHECK_THAT(other.err, Contains("1-of-5.jsonl:1: is a record of another plan"));
  // A second time, a share runs nothing and changes nothing.
  const std::string kept = test.folder.read("kept/4-of-5.jsonl");
  test.share({"ab", "tiny.toml"}, 4, 5);
  CHECK(test.folder.read("kept/4-of-5.jsonl") == kept);
}

TEST_CASE("shares: an experiment goes on by the runs it has kept, also when it grows", "[cli]") {
  const ShareTest test;
  test.folder.write("tiny.toml", kShared);
  REQUIRE(test.run({"ab", "tiny.toml", "--runs", "r.jsonl", "--set", "repetitions=2"}).code == 0);
  const Outcome more = test.run({"ab", "tiny.toml", "--runs", "r.jsonl", "--out", "a.json"});
  CHECK(more.code == 0);
  CHECK_THAT(more.out, Contains("8 of 12 runs are in r.jsonl") && Contains("4 runs, "));
  REQUIRE(test.run({"ab", "tiny.toml", "--out", "b.json"}).code == 0);
  CHECK(test.folder.read("a.json") == test.folder.read("b.json"));
  // One arm changed: the other one's runs are there.
  const Outcome arm = test.run({"ab", "tiny.toml", "--runs", "r.jsonl", "--set",
                                "arm.cadence.params.eta=0.9", "--out", "c.json"});
  CHECK_THAT(arm.out, Contains("6 of 12 runs are in r.jsonl"));
}

TEST_CASE("shares: a cancelled share keeps what is over, and goes on", "[cli]") {
  const ShareTest test;
  test.folder.write("tiny.toml", kShared);
  const Strings words{
      "ab",   "tiny.toml", "--share", "1/2",   "--records",
      "kept", "--jobs",    "1",       "--set", "scenario.moe.workload.message_bytes=1GB"};
  Command command(test.folder, words);
  while (command.running() &&
         !(test.folder.has("kept/1-of-2.jsonl") &&
           test.folder.read("kept/1-of-2.jsonl").find('\n') != std::string::npos)) {
    ::usleep(1000);
  }
  command.signal(SIGTERM);
  const Outcome outcome = command.wait();
  CAPTURE(outcome.err);
  CHECK(outcome.code == 130);
  CHECK_THAT(outcome.err, Contains("runs are kept in kept/1-of-2.jsonl; the same command goes on"));
}

TEST_CASE("sweep: gathered from shares, and with any number of jobs, the same bytes", "[cli]") {
  const ShareTest test;
  test.folder.write("small.toml", kSweep);
  const Outcome one = test.run({"sweep", "small.toml", "--jobs", "1"});
  REQUIRE(one.code == 0);
  CHECK_THAT(one.out, Contains("12 points, 2 repetitions") && Contains("cc.algorithm") &&
                          Contains("24 runs, ") && Contains("content hash"));
  const Strings files{"small.sweep.csv", "small.sweep.html", "small.sweep.json"};
  Strings expected;
  for (const std::string& file : files) expected.push_back(test.folder.read(file));
  CHECK(expected[0].starts_with(
      "workload.fan_in,fabric.buffer,cc.algorithm,fabric.rate,fabric.delay,repetition,seed,"));
  REQUIRE(test.run({"sweep", "small.toml", "--jobs", "3", "--fresh", "-q"}).code == 0);
  for (std::size_t i = 0; i < files.size(); ++i) CHECK(test.folder.read(files[i]) == expected[i]);
  CHECK_THAT(test.run({"sweep", "small.toml"}).out, Contains("24 of 24 runs are in small.runs"));
  for (int part = 1; part <= 3; ++part) test.share({"sweep", "small.toml"}, part, 3);
  REQUIRE(test.run({"gather", "small.toml", "kept"}).code == 0);
  for (std::size_t i = 0; i < files.size(); ++i) CHECK(test.folder.read(files[i]) == expected[i]);
}

TEST_CASE("sweep: bad keys and values are refused with their place before the first run", "[cli]") {
  const ShareTest test;
  const auto refused = [&](const std::string& table, const std::string& says) {
    test.folder.write("small.toml", kSweep.substr(0, kSweep.find("[sweep]")) + table);
    const Outcome outcome = test.run({"sweep", "small.toml"});
    CAPTURE(table, outcome.out);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Contains(says));
    CHECK(test.folder.list() == Strings{"small.toml"});
  };
  refused("[sweep.grid]\nfabric.hots = [4, 5]\n", "small.toml:11:");
  refused("[sweep.grid]\nfabric.hosts = [5, 0]\n", "small.toml:11:20: fabric.hosts = 0");
  refused("[sweep.grid]\nfabric.hosts = 5\n", "expected a list of values");
  refused("[sweep.grid]\nfabric.hosts = [5, 5]\n", "given twice");
  refused("[sweep.grid]\nseed = [5, 6]\n", "cannot be swept");
  refused("[sweep.latin]\npoints = 3\nfabric.rate = \"9Gb/s:1us\"\n", "\"LOW:HIGH\"");
  refused("[sweep.latin]\nfabric.rate = \"9Gb/s:10Gb/s\"\n", "expected points = N");
  refused("[sweep]\nrepetitions = 0\n", "repetitions = 0");
  refused("[sweep]\nrepetitions = 1\n", "names no values");
  refused("[sweep]\ngird = 1\n", "did you mean \"grid\"");
  refused("[sweep.grid]\nfabric.hosts = [5]\n[[sweep.list]]\nfabric.hosts = 6\n", "swept twice");
}

TEST_CASE("plan: the commands of all shares, and Slurm's script", "[cli]") {
  const ShareTest test;
  test.folder.write("tiny.toml", kShared);
  const Outcome lines = test.run({"plan", "tiny.toml", "--shares", "3", "--set", "repetitions=2"});
  REQUIRE(lines.code == 0);
  std::istringstream in(lines.out);
  std::string line;
  int shares = 0;
  while (std::getline(in, line)) {
    ++shares;
    CHECK_THAT(line, Contains("paceline ab tiny.toml --set repetitions=2 --share " +
                              std::to_string(shares) + "/3 --records tiny.records --jobs 1"));
  }
  CHECK(shares == 3);
  REQUIRE(test.run({"plan", "tiny.toml", "--slurm", "--array", "16", "--time", "02:00:00",
                    "--cores", "4", "-o", "tiny.sbatch", "--records", "my runs"})
              .code == 0);
  const std::string script = test.folder.read("tiny.sbatch");
  CHECK_THAT(script, Contains("#SBATCH --array=1-16\n") && Contains("#SBATCH --time=02:00:00\n") &&
                         Contains("#SBATCH --cpus-per-task=4\n") &&
                         Contains("--share \"$SLURM_ARRAY_TASK_ID/16\" --records 'my runs'"));
  CHECK(test.folder.has("my runs"));
  const auto refused = [&](Strings words, const std::string& says) {
    words.insert(words.begin(), {"plan", "tiny.toml"});
    const Outcome outcome = test.run(words);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Contains(says));
  };
  refused({}, "--slurm --array N, or --shares N");
  refused({"--slurm", "--array", "3"}, "expected -o FILE");
  refused({"--shares", "3", "--time", "1:00:00:00"}, "--time");
  refused({"--shares", "3", "--set", "repetitions=no"}, "repetitions");
  refused({"--shares", "3", "--", "--quick"}, "--quick");
  test.folder.write("one.toml", "[fabric]\nhosts = 4\n");
  CHECK_THAT(test.run({"plan", "one.toml", "--shares", "3"}).err,
             Contains("one.toml: this is a single run"));
}

TEST_CASE("shares: what cannot be is refused", "[cli]") {
  const ShareTest test;
  test.folder.write("tiny.toml", kShared);
  const auto refused = [&](Strings words, const std::string& says) {
    words.insert(words.begin(), {"ab", "tiny.toml"});
    const Outcome outcome = test.run(words);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Contains(says));
  };
  for (const std::string share : {"0/3", "4/3", "3", "1/", "/2", "1/2/3", "x/3"}) {
    refused({"--share", share, "--records", "kept"}, "expected I/N");
  }
  refused({"--share", "1/3"}, "--records");
  refused({"--gather", "none"}, "none: cannot be read");
  refused({"--gather", "none", "--share", "1/3", "--records", "kept"}, "--gather");
  refused({"--runs", "/dev/full", "--jobs", "1"}, "/dev/full: cannot be written: No space left");
  CHECK(test.folder.list() == Strings{"tiny.toml"});
}

}  // namespace
}  // namespace paceline::tools

// What the handles of a command line declare, seen by those who use it: --help, faults, values.

#include "dataplane/config/command/command.h"

#include <CLI/CLI.hpp>
#include <array>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/config/command_line.h"

namespace paceline::config {
namespace {

using Catch::Matchers::Contains;
using Strings = std::vector<std::string>;

// One option of each kind.
struct Declared {
  std::string file;
  Strings sets;
  std::vector<std::uint64_t> sizes;
  std::optional<std::uint64_t> seed;
  std::uint32_t parts = 2;
  int jobs = 4;
  double seconds = 1.5;
  double rate = 0;
  std::array<int, 2> cpus{0, 0};
  std::string mode = "fast";
  bool quiet = false;
  bool ran = false;
  Command program{"a program"};
  Command run = program.subcommand("run", "run it");

  Declared() {
    program.version("program 1");
    program.require_subcommand();
    run.option("FILE", file, "what to run").required().transform([](const std::string& text) {
      return "configs/" + text;
    });
    run.option("--set", sets, "a key").type("KEY=VALUE").one_by_one();
    run.option("--sizes", sizes).type("S,...").separated_by(',');
    const Option seeded = run.option("--seed", seed, "of everything").type("N");
    run.option("--parts", parts, "of it").within(1U, 8U).shows_default();
    run.option("-j,--jobs", jobs).type("N").within(1, 16).excludes(seeded);
    run.option("--seconds", seconds).within(0.5, 60.0).shows_default().needs(seeded);
    run.option("--rate", rate).not_negative();
    run.option("--cpus", cpus, "of both ends");
    run.option("--mode", mode, "how").one_of({"fast", "exact"}).shows_default();
    run.flag("-q,--quiet", quiet, "say nothing");
    run.footer("Example:\n  program run x");
    run.callback([this] { ran = true; });
  }
  Declared(const Declared&) = delete;
  Declared& operator=(const Declared&) = delete;

  static std::vector<char*> pointers(Strings& words) {
    std::vector<char*> out;
    for (std::string& word : words) out.push_back(word.data());
    return out;
  }
  std::string fault(Strings words) {
    words.insert(words.begin(), "run");
    std::vector<char*> arguments = pointers(words);
    return find_fault(program, arguments, "program").error;
  }
  std::optional<int> read(Strings words) {
    words.insert(words.begin(), {"program", "run"});
    std::vector<char*> arguments = pointers(words);
    return read_command_line(program, static_cast<int>(arguments.size()), arguments.data(),
                             "program");
  }
};

TEST_CASE("values reach the variables of options, and the callback runs", "[config][command]") {
  Declared line;
  CHECK(!line.read({"--set",  "a=1",  "x",         "--set",     "b=2",   "--sizes", "4,8",
                    "--seed", "0x10", "--parts=3", "--seconds", "2.5",   "--rate",  "0.5",
                    "--cpus", "2",    "3",         "--mode",    "exact", "-q"}));
  CHECK(line.ran);
  CHECK(line.program.got_subcommand(line.run));
  CHECK(line.file == "configs/x");
  CHECK(line.sets == Strings{"a=1", "b=2"});
  CHECK(line.sizes == std::vector<std::uint64_t>{4, 8});
  CHECK(line.seed == 16U);
  CHECK(line.parts == 3);
  CHECK(line.seconds == 2.5);
  CHECK(line.rate == 0.5);
  CHECK(line.cpus == std::array<int, 2>{2, 3});
  CHECK(line.mode == "exact");
  CHECK(line.quiet);
}

TEST_CASE("what an option allows is told where it is broken", "[config][command]") {
  Declared line;
  CHECK(line.fault({"x"}).empty());
  CHECK(line.fault({"x", "--parts", "9"}) == "--parts 9: allowed is [1 .. 8]");
  CHECK(line.fault({"x", "--jobs", "0"}) == "--jobs 0: allowed is [1 .. 16]");
  CHECK(line.fault({"x", "--seconds", "61"}) == "--seconds 61: allowed is [0.5 .. 60]");
  CHECK(line.fault({"x", "--rate", "-1"}) == "--rate -1: allowed is 0 or a number above 0");
  CHECK_THAT(line.fault({"x", "--mode", "fas"}), Contains("allowed is \"fast\" or \"exact\""));
  CHECK(line.read({"x", "--cpus", "2", "b"}) == kBadCommandLine);
  CHECK(line.fault({"x", "y"}) == "y: one argument too many; FILE is x");
}

TEST_CASE("options that are required, or go with others or not", "[config][command]") {
  CHECK(Declared().read({}) == kBadCommandLine);
  CHECK(Declared().read({"x", "--seconds", "2"}) == kBadCommandLine);
  CHECK(Declared().read({"x", "--seed", "1", "--jobs", "2"}) == kBadCommandLine);
  CHECK(!Declared().read({"x", "--seed", "1", "--seconds", "2"}));
}

TEST_CASE("help says types, defaults and what is allowed", "[config][command]") {
  Declared line;
  const std::string help = line.run.app().help();
  CHECK_THAT(help, Contains("FILE TEXT REQUIRED") && Contains("--set KEY=VALUE ...") &&
                       Contains("--parts UINT:UINT in [1 - 8]=2") &&
                       Contains("-j,--jobs N:INT in [1 - 16]") &&
                       Contains("--seconds FLOAT:FLOAT in [0.5 - 60]=1.5") &&
                       Contains("--mode TEXT:{fast,exact}=fast") &&
                       Contains("Example:\n  program run x"));
}

}  // namespace
}  // namespace paceline::config

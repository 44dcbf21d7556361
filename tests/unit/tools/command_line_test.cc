// The command line itself: what is wrong, what was given, what is allowed; for every command and
// option there is, and for the mistakes that people made.

#include "dataplane/config/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/tools/command.h"
#include "tools/commands.h"

namespace paceline::tools {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using Strings = std::vector<std::string>;

struct CommandPath {
  CLI::App* app;
  Strings words;
};

void collect(CLI::App& app, const Strings& words, std::vector<CommandPath>& out) {
  out.push_back({&app, words});
  for (CLI::App* sub : app.get_subcommands([](CLI::App*) { return true; })) {
    Strings longer = words;
    longer.push_back(sub->get_name());
    collect(*sub, longer, out);
  }
}

// All commands, without the program that they belong to.
struct Commands {
  config::Command app{"test"};
  int exit_code = 0;
  std::vector<CommandPath> all;
  Commands() {
    app.require_subcommand();
    add_commands(app, exit_code);
    collect(app.app(), {}, all);
  }
  std::string fault(Strings words) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    return config::find_fault(app, arguments, "paceline").error;
  }
};

Strings with(Strings words, const Strings& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_CASE("every option refuses an empty value, and every number what is no number", "[cli]") {
  Commands commands;
  unsigned numbers = 0;
  unsigned values = 0;
  for (const CommandPath& command : commands.all) {
    for (const CLI::Option* option : command.app->get_options()) {
      if (option->get_items_expected_max() == 0) continue;
      if (option->get_positional() && command.app->get_positionals_at_end()) continue;
      const std::string name = option->get_name();
      CAPTURE(command.words, name);
      Strings before;  // positional arguments have an order
      for (const CLI::Option* other : command.app->get_options()) {
        if (other == option) break;
        if (option->get_positional() && other->get_positional()) before.push_back("h0");
      }
      if (!option->get_positional()) before.push_back(name);
      const auto given = [&](const std::string& value) {
        return commands.fault(with(command.words, with(before, {value})));
      };
      ++values;
      CHECK_THAT(given(""), StartsWith(name + " \"\": ") &&
                                (Contains("must not be empty") || Contains("allowed is")));
      const std::string described = option->get_type_name();
      const std::string type = described.substr(0, described.find(':'));
      const bool whole = type == "N" || type == "INT" || type == "UINT";
      if (!whole && type != "FLOAT" && type != "GBPS") continue;
      ++numbers;
      for (const char* value : {"x", "3x", "1e999"}) {
        CHECK_THAT(given(value), StartsWith(name + " " + value + ": "));
      }
      if (!whole) continue;
      for (const char* value : {"-1", "010", "1.5", "99999999999999999999999"}) {
        CHECK_THAT(given(value), StartsWith(name + " " + value + ": "));
      }
    }
  }
  CHECK(numbers > 20);
  CHECK(values > 80);
}

TEST_CASE("every misspelt option and command is told from the right one", "[cli]") {
  Commands commands;
  for (const CommandPath& command : commands.all) {
    std::set<std::string> names;
    for (const CLI::Option* option : command.app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.insert("--" + name);
    }
    for (const std::string& name : names) {
      if (name.size() < 6) continue;
      std::string wrong = name;
      wrong.erase(wrong.size() - 2, 1);
      if (names.count(wrong) != 0) continue;
      CAPTURE(command.words, wrong);
      CHECK_THAT(commands.fault(with(command.words, {wrong})),
                 StartsWith(wrong + ": there is no such option; did you mean --"));
    }
    if (command.words.empty() || command.words.back().size() < 4) continue;
    Strings wrong = command.words;
    wrong.back().erase(wrong.back().size() - 1);
    if (std::any_of(commands.all.begin(), commands.all.end(),
                    [&wrong](const CommandPath& other) { return other.words == wrong; })) {
      continue;  // "tune" is a command as "tuner" is
    }
    CAPTURE(wrong);
    CHECK_THAT(commands.fault(wrong),
               StartsWith(wrong.back() + ": there is no such command; did you mean "));
  }
}

TEST_CASE("what follows -- is a program's own, and options of a list come one by one", "[cli]") {
  Commands commands;
  CHECK(commands.fault({"exec", "--nic", "h0", "--", "program", "--seed", "-1", ""}).empty());
  CHECK(commands.fault({"exec", "program", "--sed", "3"}).empty());
  CHECK(commands.fault({"emulate", "x.toml", "--set", "a=1", "--set", "b=-2"}).empty());
  CHECK(commands.fault({"emulate", "--seed", "0x10", "x.toml"}).empty());
  CHECK(commands.fault({"emulate", "--seed=7", "x.toml", "-q"}).empty());
  CHECK(commands.fault({"ab", "x.toml", "-qj4"}).empty());
  CHECK(commands.fault({"ab", "--help", "--sed"}).empty());
}

TEST_CASE("mistakes of the command line: what is wrong, what was given, what is allowed", "[cli]") {
  const Folder folder;
  folder.write("s.toml", "schema = 1\n[fabric]\nhosts = 3\n[workload]\nfan_in = 2\n");
  folder.write("text.json", "words");
  struct Case {
    Strings arguments;
    const char* error;  // behind "paceline: error: "
  };
  const Case cases[] = {
      {{"emulat", "s.toml"},
       "emulat: there is no such command; did you mean emulate?\nSee paceline --help\n"},
      {{"xyzzy"}, "xyzzy: there is no such command; expected \"ab\", "},
      {{}, "a command is missing; expected \"ab\", "},
      {{"cc"}, "a command is missing; expected \"list\", "},
      {{"cc", "shwo"},
       "shwo: there is no such command; did you mean show?\nSee paceline cc --help\n"},
      {{"emulate", "--sed", "3", "s.toml"},
       "--sed: there is no such option; did you mean --set or --seed?\nSee paceline emulate "
       "--help\n"},
      {{"emulate", "s.toml", "--seed", "-1"}, "--seed -1: expected a whole number from 0"},
      {{"emulate", "s.toml", "--seed=-1"}, "--seed -1: expected a whole number from 0"},
      {{"emulate", "s.toml", "--seed"}, "--seed: the value is missing; expected N\n"},
      {{"emulate", "s.toml", "--seed", "--quiet"}, "--seed: the value is missing; expected N\n"},
      {{"emulate", "s.toml", "--seed", "1", "--seed", "2"},
       "--seed: given twice; allowed is once\n"},
      {{"emulate", "s.toml", "t.toml"}, "t.toml: one argument too many; FILE is s.toml\n"},
      {{"emulate", "s.toml", "--quiet=3"}, "--quiet=3: the option takes no value\n"},
      {{"emulate", "s.toml", "--threads", "0"}, "--threads 0: allowed is [1 .. "},
      {{"emulate", "s.toml", "--on-stop", "halt", "--real-time"},
       "--on-stop halt: allowed is \"run-on\" or \"hold\""},
      {{"emulate", "s.toml", "--on-stop", "hold"}, "--on-stop requires --real-time\n"},
      {{"ab", "s.toml", "--jobs", "-3"}, "--jobs -3: allowed is [1 .. 1024]\n"},
      {{"ab"}, "FILE is required\nSee paceline ab --help\n"},
      {{"cc", "new", "x", "--lang", "cpp"},
       "--lang cpp: allowed is \"c\" or \"c++\"; did you mean c"},
      {{"cc", "show", "cadence", "--profile", "paper"},
       "cadence has no profile 'paper'; 'dcqcn', "},
      {{"replay", ".", "--testbed", "t", "--port", "p"}, ".: cannot be opened: it is a folder\n"},
      {{"experiment", "report", "s.toml"},
       "s.toml: expected the number of an experiment, as paceline experiment status lists them, or "
       "the folder with its files\n"},
      {{"experiment", "stop", "one", "--why", "late"}, "one: expected the number of an experiment"},
      {{"cc", "show", "xyzzy"}, "no algorithm 'xyzzy'; allowed is \"fixed\", "},
      {{"cc", "show", "dcqcn", "--profile", "xyzzy"},
       "dcqcn has no profile 'xyzzy'; allowed is 'default', "},
      {{"cc", "show", "dcqcn", "--link-rate", "fast"}, "--link-rate fast: "},
      {{"top", "--interval", "-1"}, "--interval -1: allowed is [0.05 .. 3600]\n"},
      {{"capture", "--snap", "x"}, "--snap x: allowed is [64 .. "},
      {{"capture", "--snap", "-1"}, "--snap -1: allowed is [64 .. "},
      {{"replay", "x", "--testbed", "t", "--port", "p", "--count", "99999999999999999999"},
       "--count 99999999999999999999: "},
      {{"report", "s.toml"},
       "s.toml:1:1: not JSON, or cut off here; expected a results file of paceline ab\n"},
      {{"report", "text.json"}, "text.json:1:1: not JSON"},
      {{"report", "."}, ".: cannot be read: it is a folder\n"},
      {{"report", "none.json"}, "none.json: cannot be opened: No such file or directory\n"},
  };
  for (const Case& c : cases) {
    const Outcome outcome = paceline_command(folder, c.arguments);
    CAPTURE(c.arguments, outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, StartsWith(std::string("paceline: error: ") + c.error));
    CHECK(outcome.err.find("exception") == std::string::npos);
  }
  folder.write("c.toml", "schema = 1\n[cc]\nalgorithm = \"cadence\"\nprofile = \"paper\"\n");
  const Outcome profile = paceline_command(folder, {"emulate", "c.toml"});
  CHECK(profile.code == 2);
  CHECK_THAT(profile.err,
             StartsWith("paceline: error: c.toml:4:11: cc.profile = \"paper\": cadence has "
                        "no such profile; \"dcqcn\"") &&
                 Contains(" has; allowed is \"default\""));
}

}  // namespace
}  // namespace paceline::tools

// The examples in the --help texts of all commands: options exist, values are allowed, files are in
// the tree, and what a scenario, an experiment, a league or a search is asked for is there.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cc/params.h"
#include "cc/registry.h"
#include "dataplane/config/command_line.h"
#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tests/unit/tools/command.h"
#include "tools/commands.h"

namespace paceline::tools {
namespace {

using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using Words = std::vector<std::string>;

// Files that an example takes for the reader's own: here they are these of the tree.
const std::map<std::string, std::string> kOwnFiles = {
    {"my.toml", "configs/experiments/first.toml"},
    {"SCENARIO", "configs/scenarios/incast-16.toml"},
    {"fabric.topo", "configs/scenarios/hpcc/star8.topology"},
    {"flows.txt", "configs/scenarios/hpcc/star8.flows"},
};

// Words as a shell splits them, up to what ends a command, or to the blanks before an explanation.
Words shell_words(std::string_view text) {
  Words words;
  std::optional<std::string> word;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0 ? c == quote : c == '"' || c == '\'') {
      quote = quote != 0 ? '\0' : c;
      if (!word) word.emplace();
    } else if (quote == 0 && c == ' ') {
      if (word) words.push_back(*std::exchange(word, std::nullopt));
      if (text.substr(i).starts_with("   ")) break;
    } else if (quote == 0 && !word && (c == '&' || c == '|' || c == ':')) {
      break;
    } else {
      if (!word) word.emplace();
      *word += c;
    }
  }
  if (word) words.push_back(*word);
  return words;
}

// These read all that they are asked for before they look whether --out can be written.
constexpr std::array<std::string_view, 6> kWithResults = {"ab",     "agree", "emulate",
                                                          "league", "tune",  "tuner search"};
constexpr std::array<std::string_view, 4> kOfNoConsequence = {"cc list", "cc new", "cc show",
                                                              "experiment plan"};

// What an indented line of a help text, or one that says where to start, has behind "paceline".
void collect_examples(const std::string& help, std::vector<Words>& out) {
  constexpr std::string_view kProgram = "paceline ";
  std::istringstream lines(help);
  for (std::string line, more; std::getline(lines, line);) {
    while (line.ends_with('\\') && std::getline(lines, more)) {
      line.pop_back();
      line += more.substr(std::min(more.size(), more.find_first_not_of(' ')));
    }
    if (!line.starts_with("  ") && !line.starts_with("Start here: ")) continue;
    for (std::size_t at = line.find(kProgram); at != std::string::npos;
         at = line.find(kProgram, at)) {
      const bool word = line[at - 1] == ' ';
      at += kProgram.size();
      if (word) out.push_back(shell_words(std::string_view(line).substr(at)));
    }
  }
}

void collect_examples(const CLI::App& app, std::vector<Words>& out) {
  collect_examples(app.get_footer(), out);
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    collect_examples(*sub, out);
  }
}

// The command line is read and checked, but no command is run. The callbacks stay where they are:
// they own what the options write to.
struct Parsed {
  config::Command app{"test"};
  int exit_code = 0;
  std::string error;

  explicit Parsed(Words words) {
    app.require_subcommand();
    add_commands(app, exit_code);
    app.app().parse_complete_callback([] { throw CLI::Success(); });
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    error = config::find_fault(app, arguments, "paceline").error;
    if (!error.empty()) return;
    std::reverse(words.begin(), words.end());
    try {
      app.app().parse(words);
      error = "nothing was read";
    } catch (const CLI::Success&) {
    } catch (const CLI::ParseError& fault) {
      error = fault.what();
    }
  }
  const CLI::App& command() const {
    const CLI::App* at = &app.app();
    while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
    return *at;
  }
  Words values(const std::string& option) const {
    const CLI::Option* found = command().get_option_no_throw(option);
    return found == nullptr ? Words{} : found->results();
  }
};

std::string value_of(const Parsed& parsed, const std::string& option, const std::string& absent) {
  const Words values = parsed.values(option);
  return values.empty() ? absent : values.front();
}

// The command itself reads all that it is asked for, and then may not write its results.
void check_up_to_results(const Folder& folder, Words words) {
  const std::string nowhere = folder.path("none/results");
  if (const auto at = std::find(words.begin(), words.end(), "--out"); at != words.end()) {
    words.erase(at, at + 2);
  }
  words.insert(words.end(), {"--out", nowhere});
  const Outcome outcome = paceline_command(folder, words);
  CHECK(outcome.code == 2);
  std::istringstream errors(outcome.err);
  std::size_t count = 0;
  for (std::string line; std::getline(errors, line); ++count) {
    CHECK_THAT(line,
               StartsWith("paceline: error: " + nowhere) &&
                   EndsWith(": cannot be written: there is no folder " + folder.path("none")));
  }
  CHECK(count > 0);
}

void check_parameters(const Parsed& parsed) {
  const std::string algorithm = value_of(parsed, "--algorithm", "dcqcn");
  if (algorithm.starts_with("plugin:")) return;
  const cc::AlgorithmInfo* info = cc::find(algorithm);
  REQUIRE(info != nullptr);
  for (const std::string& assignment : parsed.values("NAME=VALUE")) {
    const std::string name = assignment.substr(0, assignment.find('='));
    const double value = std::stod(assignment.substr(name.size() + 1));
    const auto spec = std::find_if(info->params.begin(), info->params.end(),
                                   [&](const cc::ParamSpec& p) { return p.name == name; });
    REQUIRE(spec != info->params.end());
    CHECK((value >= spec->min && value <= spec->max && spec->live));
  }
}

void check_testbed(const Parsed& parsed) {
  config::ReaderOptions options = reader_options();
  options.overrides = parsed.values("--set");
  const auto read =
      config::read_testbed_file(PACELINE_SOURCE_DIR "/" + value_of(parsed, "FILE", "?"), options);
  CHECK(read.errors == Words{});
}

// The first word that stands twice in a row, as after a rewriting by machine; empty: none.
std::string doubled_word(const std::string& text) {
  std::istringstream words(text);
  for (std::string word, before; words >> word; before = word) {
    if (word == before && std::all_of(word.begin(), word.end(), ::isalpha)) return word;
  }
  return {};
}

void check_words(const CLI::App& app) {
  CAPTURE(app.get_name());
  CHECK(doubled_word(app.get_description()) == "");
  for (const CLI::Option* option : app.get_options()) {
    CAPTURE(option->get_name());
    CHECK(doubled_word(option->get_description()) == "");
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    check_words(*sub);
  }
}

}  // namespace

TEST_CASE("no --help text says a word twice", "[cli]") {
  config::Command app{"test"};
  int exit_code = 0;
  add_commands(app, exit_code);
  check_words(app.app());
  CHECK(doubled_word("bytes bytes of it") == "bytes");
}

TEST_CASE("every example of a --help text is right", "[cli]") {
  std::vector<Words> examples;
  {
    config::Command app{"test"};
    int exit_code = 0;
    add_commands(app, exit_code);
    collect_examples(app.app(), examples);
  }
  CHECK(examples.size() > 50);
  std::map<std::string, unsigned> seen;
  for (const Words& words : examples) {
    CAPTURE(words);
    for (const std::string& word : words) {
      if (word.starts_with("configs/")) {
        CHECK(std::filesystem::exists(std::string(PACELINE_SOURCE_DIR "/") + word));
      }
    }
    const Parsed parsed(words);
    CHECK(parsed.error == "");
    if (!parsed.error.empty()) continue;
    std::string name = parsed.command().get_name();
    if (parsed.command().get_parent() != &parsed.app.app()) {
      name = parsed.command().get_parent()->get_name() + " " + name;
    }
    ++seen[name];
    const Folder folder;
    std::filesystem::create_directory_symlink(PACELINE_SOURCE_DIR "/configs",
                                              folder.path("configs"));
    for (const auto& [own, shipped] : kOwnFiles) {
      std::filesystem::copy_file(std::string(PACELINE_SOURCE_DIR "/") + shipped, folder.path(own));
    }
    const auto among = [&name](const auto& names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    if (among(kWithResults)) {
      check_up_to_results(folder, words);
    } else if (among(kOfNoConsequence)) {
      CHECK(paceline_command(folder, words).err.empty());
    } else if (name == "params set") {
      check_parameters(parsed);
    } else if (name == "testbed up") {
      check_testbed(parsed);
    }
  }
  for (const std::string_view name : kWithResults) CHECK(seen[std::string(name)] > 0);
  for (const std::string_view name : kOfNoConsequence) CHECK(seen[std::string(name)] > 0);
  CHECK((seen["params set"] > 0 && seen["testbed up"] > 0));
}

}  // namespace paceline::tools

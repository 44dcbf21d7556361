#include "tools/plan/planned_command.h"

#include <fmt/format.h>

#include "control/experiment/results/reproduce.h"
#include "dataplane/config/command_line.h"
#include "dataplane/config/scenario/document.h"
#include "dataplane/config/toml/toml_tree.h"
#include "tools/cli/cli.h"

namespace paceline::tools {

void PlannedCommand::add_file(const config::Command& command) {
  take_shipped_files(
      command.option("FILE", file_, "an experiment (`paceline ab`), a league or a sweep (TOML)")
          .required());
  command.option("--set", sets_, "override a key, as the command of FILE does (repeatable)")
      .type("KEY=VALUE")
      .one_by_one();
}

void PlannedCommand::add_words(const config::Command& command) {
  command.option("OPTIONS", words_, "after --, further options of the command of FILE: -- --quick");
}

config::Read<std::string> PlannedCommand::name() const {
  const auto text = config::read_text_file(file_, config::kLongestDocument);
  if (!text.ok()) return {{}, text.errors};
  const auto root = config::parse_toml(text.value, file_);
  if (!root.ok()) return {{}, root.errors};
  if (root.value.find("sweep") != nullptr) return {"sweep", {}};
  if (root.value.find("entry") != nullptr) return {"league", {}};
  if (root.value.find("arm") != nullptr) return {"ab", {}};
  return {{},
          {fmt::format(
              "{}: this is a single run; expected a table [sweep], tables [[arm]] (an experiment) "
              "or [[entry]] (a league)",
              file_)}};
}

std::vector<std::string> PlannedCommand::words(const std::string& name) const {
  std::vector<std::string> out{name, file_};
  for (const std::string& set : sets_) {
    out.emplace_back("--set");
    out.push_back(set);
  }
  out.insert(out.end(), words_.begin(), words_.end());
  return out;
}

std::string PlannedCommand::text(const std::string& program, const std::string& name) const {
  std::string out = program;
  for (const std::string& word : words(name)) out += " " + experiment::shell_word(word);
  return out;
}

int PlannedCommand::run(const std::string& name, const std::vector<std::string>& more) const {
  std::vector<std::string> all{"paceline"};
  for (const std::string& word : words(name)) all.push_back(word);
  all.insert(all.end(), more.begin(), more.end());
  std::vector<char*> arguments;
  for (std::string& word : all) arguments.push_back(word.data());
  const config::Command app;
  app.require_subcommand();
  int code = kExitGood;
  add_ab_command(app, code);
  add_league_command(app, code);
  add_sweep_command(app, code);
  const auto ended = config::read_command_line(app, static_cast<int>(arguments.size()),
                                               arguments.data(), "paceline");
  return ended ? *ended : code;
}

}  // namespace paceline::tools

// The command whose runs are planned and gathered; its file determines which one.
#pragma once

#include <string>
#include <vector>

#include "dataplane/config/command/command.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::tools {

class PlannedCommand {
 public:
  // FILE, --set and, after --, further options of the command. The latter come last: positional
  // options of the caller are added by `between`.
  void add_file(const config::Command& command);
  void add_words(const config::Command& command);

  const std::string& file() const { return file_; }
  // "ab", "league" or "sweep". Errors: the file cannot be read, or has no runs to share.
  config::Read<std::string> name() const;
  // As a shell reads it: "ab first.toml --set repetitions=3", with `program` in front.
  std::string text(const std::string& program, const std::string& name) const;
  // Runs the command with `more` behind all its words; its exit code.
  int run(const std::string& name, const std::vector<std::string>& more) const;

 private:
  std::vector<std::string> words(const std::string& name) const;

  std::string file_;
  std::vector<std::string> sets_;
  std::vector<std::string> words_;
};

}  // namespace paceline::tools

// Runs a command's list of tasks, from the list to the records: finds records that are kept, and
// executes missing tasks, here or as one share of many, or takes the records that shares have left
// in a folder.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/config/command/command.h"
#include "tools/task/kept_tasks.h"
#include "tools/task/run/workers.h"

namespace paceline::tools {

struct TaskOptions {
  unsigned jobs = 0;    // 0: one per core
  std::string runs;     // file of records of this machine; empty: none is kept
  std::string share;    // "I/N"
  std::string records;  // folder of a share's file
  std::string gather;   // folder of all shares' files
  bool fresh = false;
  bool dry_run = false;
  bool quiet = false;

  // `runs_help`: of --runs, with its default.
  void add_to(const config::Command& command, const std::string& runs_help);
  // Whether results are written in the end, by this rank.
  bool writes_results(const Workers& workers) const {
    return share.empty() && !dry_run && workers.first();
  }
};

class TaskRun {
 public:
  // All arguments must outlive this. `command` makes the same list again: "paceline ab first.toml".
  TaskRun(TaskList& tasks, const TaskOptions& options, const Workers& workers, std::string command)
      : tasks_(tasks), options_(options), workers_(workers), command_(std::move(command)) {}

  // Takes the records that are kept. `head`: a sentence about what will run. Returns an exit code
  // if the command ends here: bad input, records that are missing or wrong, --dry-run.
  std::optional<int> begin(const std::string& head);
  // Executes missing tasks. Errors name `input`. Returns an exit code if the command ends here: an
  // error, the end of a share, or of a rank that is not the first.
  std::optional<int> execute(const std::string& input);

  // Whether every task has its record. If not, the command was interrupted.
  bool whole() const { return tasks_.whole(); }
  std::size_t kept() const { return tasks_.kept(); }
  // "12 runs, 3.4 M packet-hops in ..."; empty if nothing was executed.
  const std::string& speed_text() const { return speed_text_; }

 private:
  // Returns an error, or an empty text. Sets `ends` if the command ends here without an error.
  std::string execute(const std::vector<std::size_t>& wanted, std::optional<int>& ends);
  std::optional<int> take_folder(const std::string& folder);
  std::string share_file() const;
  // Prints the missing tasks, and the commands that run them.
  void print_missing(const std::vector<std::string>& files) const;

  KeptTasks tasks_;
  const TaskOptions& options_;
  const Workers& workers_;
  std::string command_;
  std::optional<TaskShare> share_;
  std::string speed_text_;
};

}  // namespace paceline::tools

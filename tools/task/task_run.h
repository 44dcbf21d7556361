// What every command with a list of tasks does between having made the list and writing results:
// finds the records that are kept, executes what is missing, here or as one share of many, or takes
// the records that shares have left in a folder.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tools/task/kept_tasks.h"
#include "tools/task/task_threads.h"

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
  void add_to(CLI::App& command, const std::string& runs_help);
  unsigned threads() const;
  // Whether results are written in the end.
  bool writes_results() const { return share.empty() && !dry_run; }
};

class TaskRun {
 public:
  // All must outlive this. `command` makes the same list again: "paceline ab first.toml".
  TaskRun(TaskList& tasks, const TaskOptions& options, std::string command)
      : tasks_(tasks), options_(options), command_(std::move(command)) {}

  // `head`: what is about to run, in a sentence. Takes what is kept. An exit code where the command
  // ends here: bad input, records that are missing or wrong, --dry-run.
  std::optional<int> begin(const std::string& head);
  // Executes what is missing. `input` is named in errors. An exit code where the command ends here:
  // an error, or the end of a share.
  std::optional<int> execute(const std::string& input);

  // Whether every task has its record. If not, the command was interrupted.
  bool whole() const { return tasks_.whole(); }
  std::size_t kept() const { return tasks_.kept(); }
  // "12 runs, 3.4 M packet-hops in ..."; empty where nothing was executed.
  std::string speed_text() const {
    return threads_.executed() == 0 ? "" : threads_.speed_text() + "\n";
  }

 private:
  std::optional<int> take_folder(const std::string& folder);
  std::string share_file() const;
  // What is missing, and the commands that run it.
  void print_missing(const std::vector<std::string>& files) const;

  KeptTasks tasks_;
  const TaskOptions& options_;
  std::string command_;
  std::optional<TaskShare> share_;
  TaskThreads threads_;
};

}  // namespace paceline::tools

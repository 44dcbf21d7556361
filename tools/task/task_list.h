// The runs of a command as tasks that any thread, process or machine can execute: the number of a
// task goes in, a line of text comes out. Results depend only on the list, never on who executed
// which task, or in what order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "control/experiment/progress.h"

namespace paceline::tools {

struct TaskRecord {
  std::string text;        // one line without its end; empty: the task was stopped
  std::uint64_t hops = 0;  // packet-hops, for the line about speed
};

class TaskList {
 public:
  virtual ~TaskList() = default;

  virtual std::size_t size() const = 0;
  // For the time left: tasks of one group take about the same time.
  virtual experiment::WorkUnit unit(std::size_t task) const = 0;
  // For messages: "scenario 'incast' under 'cadence', repetition 3".
  virtual std::string name(std::size_t task) const = 0;
  // Hash of everything that determines the record of this task: the program, its part of the
  // configuration, the files that this names, plug-ins. It finds a kept record again, even if other
  // tasks were added or changed.
  virtual std::uint64_t task_key(std::size_t task) const = 0;
  // Hash of the whole list, in order. Processes work together only if their keys are equal.
  virtual std::uint64_t key() const;

  // Any thread, several at a time. Ends early, with an empty record, when `stop` becomes true.
  // Throws std::invalid_argument when the world cannot be built.
  virtual TaskRecord execute(std::size_t task, const std::atomic<bool>& stop) const = 0;
  // Keeps a record that execute() returned, here or in another process; one call at a time, one
  // call per task. Returns an error of the record or of keeping it, or an empty text.
  virtual std::string keep(std::size_t task, std::string_view record) = 0;
};

}  // namespace paceline::tools

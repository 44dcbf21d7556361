// A list whose records can be checked: of task n the text n*n. What else it does is said by who
// makes it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "dataplane/base/hash.h"
#include "tools/task/task_list.h"

namespace paceline::tools {

class SquareTasks final : public TaskList {
 public:
  explicit SquareTasks(std::size_t size, std::uint64_t files = 0) : records(size), files_(files) {}

  std::size_t size() const override { return records.size(); }
  experiment::WorkUnit unit(std::size_t) const override { return {0, 1}; }
  std::string name(std::size_t task) const override { return "square " + std::to_string(task); }
  std::uint64_t task_key(std::size_t task) const override {
    // Other files make a difference to the second half of the tasks.
    return ContentHash().number(task).number(2 * task < size() ? 0 : files_).value();
  }
  TaskRecord execute(std::size_t task, const std::atomic<bool>& stop) const override {
    ++executed;
    if (before) before(task, stop);
    if (stop.load()) return {};
    return {std::to_string(task * task), 1};
  }
  std::string keep(std::size_t task, std::string_view record) override {
    if (full_after == kept) return "the disk is full";
    ++kept;
    if (!records[task].empty()) return name(task) + " was kept twice";
    records[task] = record;
    return {};
  }

  bool whole() const {
    for (std::size_t task = 0; task < size(); ++task) {
      if (records[task] != std::to_string(task * task)) return false;
    }
    return true;
  }
  std::vector<std::size_t> all() const {
    std::vector<std::size_t> out(size());
    for (std::size_t task = 0; task < size(); ++task) out[task] = task;
    return out;
  }

  std::function<void(std::size_t task, const std::atomic<bool>& stop)> before;
  std::size_t full_after = ~std::size_t{0};
  std::size_t kept = 0;
  mutable std::atomic<std::size_t> executed{0};
  std::vector<std::string> records;

 private:
  std::uint64_t files_;
};

}  // namespace paceline::tools

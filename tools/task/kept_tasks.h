// A list of tasks whose records are kept in files: tasks with a record are not executed again, new
// records are appended as they come. Not thread-safe, except for execute().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/task/record_file.h"
#include "tools/task/task_list.h"

namespace paceline::tools {

// One of `of` parts of a list: its tasks are dealt out in turn, those of one group one after
// another, so that every part gets its share of every group.
struct TaskShare {
  std::size_t part = 1;  // 1 .. of
  std::size_t of = 1;
};

class KeptTasks final : public TaskList {
 public:
  // `tasks` must outlive this.
  explicit KeptTasks(TaskList& tasks);

  std::size_t size() const override { return tasks_.size(); }
  experiment::WorkUnit unit(std::size_t task) const override { return tasks_.unit(task); }
  std::string name(std::size_t task) const override { return tasks_.name(task); }
  std::uint64_t task_key(std::size_t task) const override { return tasks_.task_key(task); }
  std::uint64_t key() const override { return key_; }
  TaskRecord execute(std::size_t task, const std::atomic<bool>& stop) const override {
    return tasks_.execute(task, stop);
  }
  // Appends the record to the file of append_to, if there is one, before the list takes it.
  std::string keep(std::size_t task, std::string_view record) override;

  // Takes the records of a file that belong to tasks without one, by their keys. Ignores other
  // lines: of other plans, of earlier programs, or cut off. Returns an error, or an empty text.
  std::string take_known(const std::string& file);
  // Takes every record of a file, which must all belong to this list. Errors name the line, what is
  // wrong with it and why.
  std::vector<std::string> take_all(const std::string& file);
  // Returns an error, or an empty text.
  std::string append_to(const std::string& file, bool fresh, RecordSharing sharing) {
    return file_.open(file, fresh, sharing);
  }

  std::size_t kept() const { return kept_; }
  bool whole() const { return kept_ == size(); }
  // Numbers of tasks without a record, ascending.
  std::vector<std::size_t> missing() const;
  // The same, of one share only.
  std::vector<std::size_t> missing(TaskShare share) const;
  std::size_t size_of(TaskShare share) const;
  // Parts of `of` that lack a record, ascending.
  std::vector<std::size_t> parts_missing(std::size_t of) const;

 private:
  struct Kept {
    std::uint64_t content = 0;  // hash of the record
    std::uint32_t file = 0;     // from 1, in files_; 0: no record is kept
    std::uint32_t line = 0;
  };
  // The part of each task when a list is dealt out to `of` parts, from 0.
  std::vector<std::size_t> dealt(std::size_t of) const;
  std::string take(std::size_t task, std::string_view record, std::uint32_t file, std::size_t line);
  std::string wrong_line(std::string_view text, bool has_end, std::uint32_t file,
                         std::size_t number);

  TaskList& tasks_;
  std::uint64_t key_ = 0;
  std::vector<Kept> kept_at_;
  std::size_t kept_ = 0;
  std::vector<std::string> files_;
  RecordFile file_;
};

}  // namespace paceline::tools

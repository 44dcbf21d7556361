#include "tools/task/kept_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "dataplane/base/hash.h"
#include "tools/task/input_keys.h"
#include "tools/task/record_line.h"

namespace paceline::tools {

namespace {

// Errors name at most this many lines of one file.
constexpr std::size_t kMostErrors = 10;

}  // namespace

KeptTasks::KeptTasks(TaskList& tasks) : tasks_(tasks), key_(tasks.key()), kept_at_(tasks.size()) {}

std::string KeptTasks::take(std::size_t task, std::string_view record, std::uint32_t file,
                            std::size_t line) {
  std::string problem = tasks_.keep(task, record);
  if (!problem.empty()) return problem;
  kept_at_[task] = {ContentHash().text(record).value(), file, static_cast<std::uint32_t>(line)};
  ++kept_;
  return {};
}

std::string KeptTasks::keep(std::size_t task, std::string_view record) {
  if (file_.is_open()) {
    std::string problem =
        file_.append(record_line({program_key(), key_, task, tasks_.task_key(task), record}));
    if (!problem.empty()) return problem;
    if (files_.empty() || files_.back() != file_.path()) files_.push_back(file_.path());
  } else if (files_.empty()) {
    files_.emplace_back("this process");
  }
  return take(task, record, static_cast<std::uint32_t>(files_.size()), 0);
}

std::string KeptTasks::take_known(const std::string& file) {
  std::vector<std::pair<std::uint64_t, std::size_t>> by_key;
  for (std::size_t task = 0; task < size(); ++task) {
    if (kept_at_[task].file == 0) by_key.emplace_back(tasks_.task_key(task), task);
  }
  std::sort(by_key.begin(), by_key.end());
  files_.push_back(file);
  const auto number = static_cast<std::uint32_t>(files_.size());
  return read_lines(file, [&](std::size_t line, std::string_view text, bool has_end) {
    RecordLine record;
    if (!has_end || !parse_record_line(text, record).empty()) return true;
    auto at = std::lower_bound(by_key.begin(), by_key.end(), std::pair{record.key, std::size_t{0}});
    // Tasks of one key have the same record. One that is refused is of another program: run again.
    for (; at != by_key.end() && at->first == record.key; ++at) {
      if (kept_at_[at->second].file == 0) take(at->second, record.record, number, line);
    }
    return true;
  });
}

std::string KeptTasks::wrong_line(std::string_view text, bool has_end, std::uint32_t file,
                                  std::size_t number) {
  RecordLine line;
  if (std::string problem = parse_record_line(text, line); !problem.empty()) {
    return problem + (has_end ? "" : ", and it is the last one");
  }
  if (line.program != program_key()) {
    return fmt::format("is a record of another build of paceline ({:016x}; this one is {:016x})",
                       line.program, program_key());
  }
  if (line.plan != key_) {
    return fmt::format(
        "is a record of another plan ({:016x}; this one is {:016x}): options, a file or a plug-in "
        "differ",
        line.plan, key_);
  }
  if (line.task >= size() || tasks_.task_key(line.task) != line.key) {
    return fmt::format("says task {} of this plan, which has no such task", line.task);
  }
  const Kept& known = kept_at_[line.task];
  if (known.file == 0) return take(line.task, line.record, file, number);
  if (known.content == ContentHash().text(line.record).value()) return {};
  return fmt::format("is a second record of {}, and differs from the first ({}:{})",
                     tasks_.name(line.task), files_[known.file - 1], known.line);
}

std::vector<std::string> KeptTasks::take_all(const std::string& file) {
  files_.push_back(file);
  const auto number = static_cast<std::uint32_t>(files_.size());
  std::vector<std::string> errors;
  std::size_t more = 0;
  const auto check = [&](std::size_t line, std::string_view text, bool has_end) {
    const std::string wrong = wrong_line(text, has_end, number, line);
    if (wrong.empty()) return true;
    if (errors.size() == kMostErrors) {
      ++more;
    } else {
      errors.push_back(fmt::format("{}:{}: {}", file, line, wrong));
    }
    return true;
  };
  std::string unreadable = read_lines(file, check);
  if (more != 0) errors.push_back(fmt::format("{}: {} more lines are wrong", file, more));
  if (!unreadable.empty()) errors.push_back(std::move(unreadable));
  return errors;
}

std::vector<std::size_t> KeptTasks::dealt(std::size_t of) const {
  std::vector<std::size_t> order(size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
    return tasks_.unit(a).group < tasks_.unit(b).group;
  });
  std::vector<std::size_t> parts(size());
  for (std::size_t i = 0; i < order.size(); ++i) parts[order[i]] = i % of;
  return parts;
}

std::vector<std::size_t> KeptTasks::missing() const { return missing({1, 1}); }

std::vector<std::size_t> KeptTasks::missing(TaskShare share) const {
  const std::vector<std::size_t> parts = dealt(share.of);
  std::vector<std::size_t> out;
  for (std::size_t task = 0; task < size(); ++task) {
    if (kept_at_[task].file == 0 && parts[task] == share.part - 1) out.push_back(task);
  }
  return out;
}

std::size_t KeptTasks::size_of(TaskShare share) const {
  return size() / share.of + (size() % share.of >= share.part ? 1 : 0);
}

std::vector<std::size_t> KeptTasks::parts_missing(std::size_t of) const {
  const std::vector<std::size_t> parts = dealt(of);
  std::vector<bool> lacking(of);
  for (std::size_t task = 0; task < size(); ++task) {
    if (kept_at_[task].file == 0) lacking[parts[task]] = true;
  }
  std::vector<std::size_t> out;
  for (std::size_t part = 0; part < of; ++part) {
    if (lacking[part]) out.push_back(part + 1);
  }
  return out;
}

}  // namespace paceline::tools

#include "control/experiment/live/experiment_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "control/experiment/live/plan/plan_reader.h"
#include "control/experiment/text/json_reader.h"
#include "dataplane/config/scenario/document.h"

namespace paceline::experiment::live {

namespace {

constexpr const char* kPluginTables = "algorithms.json";
constexpr std::size_t kLongestBlocks = std::size_t{256} << 20;

// Closed at the end of its scope; what cannot be written is an error.
class OutFile {
 public:
  OutFile(const std::string& path, int flags)
      : path_(path), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0640)) {
    if (fd_ < 0) fail();
  }
  OutFile(const OutFile&) = delete;
  OutFile& operator=(const OutFile&) = delete;
  ~OutFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  void write(std::string_view text) {
    while (wrong_.empty() && !text.empty()) {
      const ssize_t n = ::write(fd_, text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail();
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void cut(std::size_t bytes) {
    if (wrong_.empty() && ::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) fail();
  }
  std::size_t size() {
    struct stat facts {};
    if (wrong_.empty() && ::fstat(fd_, &facts) != 0) fail();
    return static_cast<std::size_t>(facts.st_size);
  }
  // Returns an error, or an empty text once the data is on the disk.
  std::string sync() {
    if (wrong_.empty() && ::fdatasync(fd_) != 0) fail();
    return wrong_;
  }

 private:
  void fail() { wrong_ = path_ + ": " + std::strerror(errno); }

  std::string path_;
  int fd_;
  std::string wrong_;
};

std::string place(const std::string& folder, const char* name) { return folder + "/" + name; }

// A file is whole or as it was: it is written beside, and moved.
std::string write_whole(const std::string& folder, const char* name, std::string_view text) {
  const std::string path = place(folder, name);
  OutFile file(path + ".new", O_TRUNC);
  file.write(text);
  if (std::string wrong = file.sync(); !wrong.empty()) return wrong;
  if (::rename((path + ".new").c_str(), path.c_str()) != 0) {
    return path + ": " + std::strerror(errno);
  }
  return {};
}

void read_circumstances(const std::string& text, const std::string& path, ExperimentFiles& out,
                        std::vector<std::string>& errors) {
  const nlohmann::json body = JsonReader::parse(text);
  try {
    out.null_experiment = body.at("null_experiment").get<bool>();
    out.circumstances.finished = body.at("finished").get<bool>();
    out.circumstances.hard_guard = body.at("hard_guard").get<std::string>();
    out.circumstances.stopped = body.at("stopped").get<std::string>();
    out.circumstances.calibrated = body.at("calibrated").get<bool>();
    out.circumstances.host_late = body.value("host_late", 0.0);  // of versions that had none
  } catch (const nlohmann::json::exception&) {
    errors.push_back(fmt::format(
        "{}: expected the JSON that pacelined wrote: null_experiment, finished, hard_guard, "
        "stopped and calibrated",
        path));
  }
}

// Having none is not an error: most experiments compare built-in algorithms.
void read_plugin_tables(const std::string& path, config::AlgorithmCatalogue& out,
                        std::vector<std::string>& errors) {
  if (::access(path.c_str(), F_OK) != 0) return;
  const config::Read<std::string> text = config::read_text_file(path, config::kLongestDocument);
  errors.insert(errors.end(), text.errors.begin(), text.errors.end());
  if (!text.ok()) return;
  const nlohmann::json body = JsonReader::parse(text.value);
  const auto tables = body.is_object() ? body.find("algorithms") : body.end();
  if (!body.is_object() || tables == body.end() || !tables->is_array()) {
    errors.push_back(path + ": no list \"algorithms\"");
    return;
  }
  for (const nlohmann::json& table : *tables) {
    const std::string wrong = out.add(table);
    if (!wrong.empty()) errors.push_back(fmt::format("{}: {}", path, wrong));
  }
}

// Returns the text, or adds an error.
std::string take(const std::string& path, std::size_t most, std::vector<std::string>& errors) {
  config::Read<std::string> text = config::read_text_file(path, most);
  std::move(text.errors.begin(), text.errors.end(), std::back_inserter(errors));
  return std::move(text.value);
}

template <class T>
T take(config::Read<T> read, std::vector<std::string>& errors) {
  std::move(read.errors.begin(), read.errors.end(), std::back_inserter(errors));
  return std::move(read.value);
}

}  // namespace

Plan null_experiment_of(Plan plan) {
  if (is_null_experiment(plan) || plan.arms.size() != 2) return plan;
  plan.name += " (A/A)";
  plan.arms[1].cc = plan.arms[0].cc;
  plan.arms[1].name = plan.arms[0].name + " again";
  plan.calibration.clear();
  plan.no_calibration = "an A/A run calibrates";
  return plan;
}

std::string circumstances_text(const Circumstances& circumstances, bool null_experiment) {
  const nlohmann::json body{{"schema", 1},
                            {"null_experiment", null_experiment},
                            {"finished", circumstances.finished},
                            {"hard_guard", circumstances.hard_guard},
                            {"stopped", circumstances.stopped},
                            {"calibrated", circumstances.calibrated},
                            {"host_late", circumstances.host_late}};
  return body.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

config::Read<ExperimentFiles> read_experiment_folder(
    const std::string& folder, std::span<const cc::AlgorithmInfo> algorithms) {
  config::Read<ExperimentFiles> out;
  ExperimentFiles& files = out.value;
  const std::string ends = place(folder, "circumstances.json");
  const std::string end_text = take(ends, config::kLongestDocument, out.errors);
  if (!out.ok()) return out;
  read_circumstances(end_text, ends, files, out.errors);
  config::AlgorithmCatalogue catalogue;
  read_plugin_tables(place(folder, kPluginTables), catalogue, out.errors);
  if (!out.ok()) return out;
  files.plan = take(read_plan_file(place(folder, "plan.toml"),
                                   catalogue.plugins() ? catalogue.algorithms() : algorithms,
                                   [&](const std::string& path) { return catalogue.at(path); }),
                    out.errors);
  if (!out.ok()) return out;
  if (files.null_experiment) files.plan = null_experiment_of(std::move(files.plan));
  note_plugins(files.plan, catalogue);
  const std::string schedule = place(folder, "schedule.json");
  const std::string schedule_json = take(schedule, kLongestBlocks, out.errors);
  if (!out.ok()) return out;
  files.schedule = take(read_schedule(schedule_json, schedule, &files.plan), out.errors);
  const std::string blocks = place(folder, "blocks.jsonl");
  const std::string lines = take(blocks, kLongestBlocks, out.errors);
  if (out.ok()) files.blocks = take(read_blocks(lines, blocks), out.errors);
  return out;
}

std::string write_experiment_folder(const std::string& folder, std::string_view plan,
                                    const Schedule& schedule, bool null_experiment) {
  if (::mkdir(folder.c_str(), 0750) != 0) return folder + ": " + std::strerror(errno);
  std::string wrong = write_whole(folder, "plan.toml", plan);
  if (wrong.empty()) wrong = write_whole(folder, "schedule.json", schedule_text(schedule));
  if (wrong.empty()) wrong = append_blocks(folder, {});
  if (wrong.empty()) wrong = write_circumstances(folder, {}, null_experiment);
  return wrong;
}

std::string write_plugin_tables(const std::string& folder, const Plan& plan,
                                const config::AlgorithmCatalogue& catalogue) {
  if (plan.plugins.empty()) return {};
  nlohmann::json tables = nlohmann::json::array();
  for (const Plan::Plugin& plugin : plan.plugins) tables.push_back(catalogue.table(plugin.name));
  const nlohmann::json body{{"schema", 1}, {"algorithms", std::move(tables)}};
  return write_whole(folder, kPluginTables,
                     body.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::string write_circumstances(const std::string& folder, const Circumstances& circumstances,
                                bool null_experiment) {
  return write_whole(folder, "circumstances.json",
                     circumstances_text(circumstances, null_experiment));
}

std::string cut_blocks(const std::string& folder, std::size_t whole_bytes) {
  OutFile file(place(folder, "blocks.jsonl"), 0);
  file.cut(whole_bytes);
  return file.sync();
}

// A line that could not be written completely is removed: the next one begins on a line of its own.
std::string append_blocks(const std::string& folder, std::span<const BlockRecord> records) {
  OutFile file(place(folder, "blocks.jsonl"), O_APPEND);
  const std::size_t before = file.size();
  for (const BlockRecord& record : records) file.write(record_line(record));
  std::string wrong = file.sync();
  if (!wrong.empty()) cut_blocks(folder, before);
  return wrong;
}

}  // namespace paceline::experiment::live

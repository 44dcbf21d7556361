#include "tools/task/run/task_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "control/experiment/results/reproduce.h"
#include "dataplane/base/text/printable.h"
#include "tools/task/ranks/rank_team.h"
#include "tools/task/task_threads.h"

namespace paceline::tools {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostShares = 1'000'000;
constexpr std::string_view kRecordsEnd = ".jsonl";
constexpr std::size_t kMostSharesNamed = 8;  // shares, each with its command

// "3/16"; nothing if it is not a share.
std::optional<TaskShare> parse_share(std::string_view text, std::string_view between) {
  TaskShare share;
  const char* const end = text.data() + text.size();
  const auto part = std::from_chars(text.data(), end, share.part);
  const std::string_view rest(part.ptr, static_cast<std::size_t>(end - part.ptr));
  if (part.ec != std::errc() || !rest.starts_with(between)) return std::nullopt;
  const auto of = std::from_chars(part.ptr + between.size(), end, share.of);
  if (of.ec != std::errc() || of.ptr != end) return std::nullopt;
  if (share.part < 1 || share.part > share.of || share.of > kMostShares) return std::nullopt;
  return share;
}

std::string file_name(TaskShare share) {
  return fmt::format("{}-of-{}{}", share.part, share.of, kRecordsEnd);
}

// Files of records in a folder, sorted by name; `error` if it cannot be read.
std::vector<std::string> record_files(const std::string& folder, std::string& error) {
  std::vector<std::string> files;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    if (at->path().extension() == kRecordsEnd) files.push_back(at->path().string());
  }
  if (failed) error = fmt::format("{}: cannot be read: {}", folder, failed.message());
  std::sort(files.begin(), files.end());
  return files;
}

// In how many shares the files were made; 0 where that cannot be told.
std::size_t shares_in(const std::vector<std::string>& files) {
  std::size_t of = 0;
  for (const std::string& file : files) {
    const auto share = parse_share(fs::path(file).stem().string(), "-of-");
    if (share && share->of == 1) continue;  // what others had left, run on one machine
    if (!share || (of != 0 && share->of != of)) return 0;
    of = share->of;
  }
  return of;
}

}  // namespace

void TaskOptions::add_to(const config::Command& command, const std::string& runs_help) {
  command.option("-j,--jobs", jobs, "runs at a time (default: one per core)")
      .type("N")
      .within(1, 1024);
  const config::Option kept = command.option("--runs", runs, runs_help).type("FILE.jsonl");
  const config::Option again =
      command.flag("--fresh", fresh, "run everything again; forget the runs that are kept");
  const config::Option part =
      command
          .option("--share", share,
                  "run only this part of the runs, and keep it in --records: many "
                  "machines, one share each (`paceline plan` writes the commands)")
          .type("I/N");
  const config::Option folder = command.option("--records", records, "where shares keep their runs")
                                    .type("FOLDER")
                                    .needs(part);
  part.needs(folder).excludes(kept);
  const config::Option whole =
      command
          .option("--gather", gather,
                  "run nothing: take all runs from where shares kept them (the same as "
                  "`paceline gather`)")
          .type("FOLDER");
  whole.excludes(part).excludes(kept).excludes(again);
  command.flag("--dry-run", dry_run, "check everything, say how many runs there are, run none");
  command.flag("-q,--quiet", quiet, "print nothing but errors");
}

std::optional<int> TaskRun::begin(const std::string& head) {
  if (!options_.share.empty()) {
    share_ = parse_share(options_.share, "/");
    if (!share_) {
      return report_errors(
          {fmt::format("--share {}: expected I/N, two whole numbers with 1 <= I "
                       "<= N <= {}",
                       options_.share, kMostShares)});
    }
  }
  // Only the first rank knows what is kept.
  if (!workers_.first()) return std::nullopt;
  if (!options_.quiet) {
    fmt::print("{}, {}\n", head, workers_.text());
    std::fflush(stdout);
  }
  if (options_.dry_run) {
    if (!options_.quiet) fmt::print("{} runs; nothing was run\n", tasks_.size());
    return kExitGood;
  }
  if (!options_.gather.empty()) return take_folder(options_.gather);
  std::string error;
  if (share_) {
    std::error_code failed;
    fs::create_directories(options_.records, failed);
    // A share of everything is for what other shares have left.
    std::vector<std::string> files{share_file()};
    if (failed) {
      error = fmt::format("{}: cannot be made: {}", options_.records, failed.message());
    } else if (share_->of == 1) {
      files = record_files(options_.records, error);
    }
    if (error.empty()) error = tasks_.append_to(share_file(), options_.fresh, RecordSharing::sole);
    for (const std::string& file : files) {
      if (error.empty() && !options_.fresh) error = tasks_.take_known(file);
    }
  } else if (!options_.runs.empty()) {
    if (!options_.fresh) error = tasks_.take_known(options_.runs);
    if (error.empty())
      error = tasks_.append_to(options_.runs, options_.fresh, RecordSharing::shared);
  }
  if (!error.empty()) return report_errors({error});
  if (tasks_.kept() != 0 && !options_.quiet) {
    fmt::print("{} of {} runs are in {} (--fresh runs them again)\n", tasks_.kept(), tasks_.size(),
               share_ ? options_.records : options_.runs);
    std::fflush(stdout);
  }
  return std::nullopt;
}

std::optional<int> TaskRun::execute(const std::string& input) {
  const std::vector<std::size_t> wanted = share_ ? tasks_.missing(*share_) : tasks_.missing();
  std::optional<int> ends;
  if (const std::string error = execute(wanted, ends); !error.empty()) {
    return report_errors({fmt::format("{}: {}", input, error)});
  }
  if (ends || !share_) return ends;
  const std::size_t all = tasks_.size_of(*share_);
  const std::size_t missing = tasks_.missing(*share_).size();
  if (missing != 0) {
    fmt::print(stderr,
               "paceline: interrupted: {} of {} runs are kept in {}; the same command goes on\n",
               all - missing, all, share_file());
    return kExitInterrupted;
  }
  if (!options_.quiet) {
    fmt::print("share {} of {}: {} runs are in {}\n{}", share_->part, share_->of, all, share_file(),
               speed_text());
  }
  return kExitGood;
}

std::string TaskRun::execute(const std::vector<std::size_t>& wanted, std::optional<int>& ends) {
  const Interrupt interrupt;
  if (workers_.team == nullptr) {
    ProgressLine line(options_.quiet);
    TaskThreads threads;
    threads.run(tasks_, wanted, workers_.jobs, Interrupt::flag(), line);
    if (threads.executed() != 0) speed_text_ = threads.speed() + "\n";
    return threads.error();
  }
  const RankRun run = workers_.team->run(tasks_, wanted, Keepers::first_rank, options_.quiet);
  if (!workers_.first()) {
    ends = run.error.empty() ? kExitGood : kExitFailed;
    if (!run.error.empty()) fmt::print(stderr, "paceline: error: {}\n", printable(run.error));
    return {};
  }
  if (run.executed != 0) {
    speed_text_ =
        tools::speed_text(run.executed, run.hops, run.cpu_seconds, run.wall_seconds) + "\n";
  }
  for (const std::string& failure : run.failures) {
    fmt::print(stderr, "paceline: {}\n", printable(failure));
  }
  if (!run.failures.empty()) {
    fmt::print(stderr, "paceline: {} of {} runs are kept; nothing was written\n", tasks_.kept(),
               tasks_.size());
    ends = kExitFailed;
  }
  return run.error;
}

std::string TaskRun::share_file() const {
  return (fs::path(options_.records) / file_name(*share_)).string();
}

std::optional<int> TaskRun::take_folder(const std::string& folder) {
  std::string unreadable;
  const std::vector<std::string> files = record_files(folder, unreadable);
  if (!unreadable.empty()) return report_errors({unreadable});
  std::vector<std::string> errors;
  for (const std::string& file : files) {
    for (std::string& error : tasks_.take_all(file)) errors.push_back(std::move(error));
  }
  if (!errors.empty()) {
    errors.push_back(fmt::format(
        "{}: nothing was written. A share that is run again repairs a line that is cut off; remove "
        "what belongs to something else",
        folder));
    return report_errors(errors);
  }
  if (tasks_.whole()) return std::nullopt;
  print_missing(files);
  return kExitFailed;
}

void TaskRun::print_missing(const std::vector<std::string>& files) const {
  const std::size_t of = shares_in(files);
  const std::string folder = experiment::shell_word(options_.gather);
  std::string text = fmt::format("{}: {} of {} runs are missing", options_.gather,
                                 tasks_.size() - tasks_.kept(), tasks_.size());
  if (of > 1) {
    const std::vector<std::size_t> parts = tasks_.parts_missing(of);
    text += fmt::format(", of {} of {} shares. Run these again, in any way:\n", parts.size(), of);
    for (std::size_t i = 0; i < std::min(parts.size(), kMostSharesNamed); ++i) {
      text += fmt::format("  {} --share {}/{} --records {}\n", command_, parts[i], of, folder);
    }
    text += fmt::format("or by Slurm, with the script of the plan:\n  sbatch --array={} SCRIPT\n",
                        fmt::join(parts, ","));
    text += "or all that is missing on this machine:\n";
  } else {
    text += ". Run them on this machine:\n";
  }
  text += fmt::format("  {} --share 1/1 --records {}", command_, folder);
  fmt::print(stderr, "paceline: {}\nNothing was written.\n", text);
}

}  // namespace paceline::tools

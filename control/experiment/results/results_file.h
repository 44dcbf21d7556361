// The raw results of an experiment as JSON (schema 1): header, resolved configuration, one line per
// run, the effects computed from them. Holds no wall-clock time, host name or speed, and has a
// fixed key order and fixed number formatting: the same experiment gives the same bytes on every
// build and with any number of jobs, so that files are compared by their hash.
#pragma once

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "control/experiment/analysis/effects.h"
#include "control/experiment/detail.h"
#include "control/experiment/run_result.h"

namespace paceline::experiment {

inline constexpr std::uint32_t kResultsSchema = 1;
inline constexpr std::string_view kResultsKind = "paceline experiment results";
// `version` in the results files of ab, league and tune: the version of the meaning of runs, not of
// the program. It is part of the content hash, so a release with the same results has the same
// hashes. Raise it with a change after which results cannot be compared with those before.
inline constexpr std::string_view kResultsVersion = "0.1.0";

struct Results {
  std::string version;        // kResultsVersion, or what the file has that was read
  std::string configuration;  // the experiment as resolved: TOML text that repeats it
  AnalysisPlan plan;
  std::vector<RunResult> runs;  // in any order; written by scenario, arm and repetition of the plan
  Detail detail;                // for the charts of a report; empty where it was not recorded
};

// The file's text. `analysis` must be analyse(results.runs, results.plan).
std::string results_text(const Results& results, const Analysis& analysis);

// The content hash, for comparison between machines: covers the text without its last member,
// `detail`, which has file names as typed and can be left out.
std::uint64_t content_hash(const Results& results, const Analysis& analysis);

// Everything wrong with a file, one message each: "FILE:LINE:COLUMN: ..." for malformed JSON,
// "FILE: runs[3].seed: ..." for a value.
class ResultsFileError : public std::runtime_error {
 public:
  explicit ResultsFileError(std::vector<std::string> errors);
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  std::vector<std::string> errors_;
};

// The inverse of results_text, except that effects are not read: they follow from the runs.
// `source` names the text in errors. Throws ResultsFileError.
Results parse_results(std::string_view text, std::string_view source);

// Writes beside `path` and renames in the end, so that a reader never sees half a file; a device or
// a pipe is written to as it is. All throw ResultsFileError.
class ResultsFileWriter {
 public:
  explicit ResultsFileWriter(std::string path);
  ~ResultsFileWriter();  // removes an unfinished file
  ResultsFileWriter(const ResultsFileWriter&) = delete;
  ResultsFileWriter& operator=(const ResultsFileWriter&) = delete;

  void write(std::string_view text);
  void finish();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::string path_;
  std::string beside_;  // the file to write to: path_ itself if that is not a regular file
  std::ofstream out_;
};
void write_results_file(const std::string& path, std::string_view text);
Results read_results_file(const std::string& path);

}  // namespace paceline::experiment

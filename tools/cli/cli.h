// Shared by the subcommands of `paceline`: exit codes, common options, interruption, progress.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/config/command/command.h"

namespace paceline::tools {

// 0: good. 1: an experiment failed or an invariant broke. 2: bad input. 130: interrupted.
inline constexpr int kExitGood = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitBadInput = 2;
inline constexpr int kExitUnknown = 3;  // nothing can be said
inline constexpr int kExitInterrupted = 130;

// Each registers itself with the application; its callback stores the exit code in `exit_code`.
void add_emulate_command(const config::Command& app, int& exit_code);
void add_topology_command(const config::Command& app, int& exit_code);
void add_collective_command(const config::Command& app, int& exit_code);
void add_job_command(const config::Command& app, int& exit_code);
void add_ab_command(const config::Command& app, int& exit_code);
void add_league_command(const config::Command& app, int& exit_code);
void add_sweep_command(const config::Command& app, int& exit_code);
void add_plan_commands(const config::Command& app, int& exit_code);  // and `gather`
void add_cc_command(const config::Command& app, int& exit_code);
void add_report_command(const config::Command& app, int& exit_code);
void add_tune_command(const config::Command& app, int& exit_code);
void add_tuner_command(const config::Command& app, int& exit_code);
void add_agree_command(const config::Command& app, int& exit_code);
void add_capture_command(const config::Command& app, int& exit_code);
void add_replay_command(const config::Command& app, int& exit_code);
void add_join_command(const config::Command& app, int& exit_code);
void add_exec_command(const config::Command& app, int& exit_code);
void add_ci_command(const config::Command& app, int& exit_code);
void add_testbed_command(const config::Command& app, int& exit_code);
void add_top_command(const config::Command& app, int& exit_code);
void add_params_command(const config::Command& app, int& exit_code);
void add_explain_command(const config::Command& app, int& exit_code);
void add_completion_command(const config::Command& app, int& exit_code);

// If configs/X does not exist, the X that was installed with the program is used
// (share/paceline/X), so that examples work in any folder.
std::string shipped_file(const std::string& path);
// For an option that takes an input file.
void take_shipped_files(const config::Option& option);

// Options that say where a scenario comes from and how it is changed.
struct InputOptions {
  std::string file;
  std::vector<std::string> sets;
  std::optional<std::uint64_t> seed;
  std::string topology;
  std::string flows;

  void add_to(const config::Command& command, const std::string& file_help, bool file_required);
  // --set, --seed, --topology and --flows as overrides of the reader, later ones last.
  std::vector<std::string> overrides() const;
  // All words as a shell reads them: " first.toml --set repetitions=3".
  std::string command_words() const;
};

// Prints "paceline: error: ..." lines; returns kExitBadInput.
int report_errors(const std::vector<std::string>& errors);

// Checks before a run whether `path` can be written. Returns an error, or an empty text. Leaves no
// file behind. An empty path is not checked.
std::vector<std::string> check_output(const std::string& path);

// Ctrl-C and SIGTERM set a flag (the second one kills, as usual).
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  static const std::atomic<bool>& flag();
  // As if Ctrl-C had been pressed once.
  static void set();
};

// A progress line on standard error: rewritten in place on a terminal, a line every tenth
// elsewhere.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  void show(double share_done, double seconds_left, const std::string& what);
  void clear();

 private:
  bool quiet_;
  bool terminal_;
  int last_tenth_ = -1;
  std::size_t width_ = 0;
};

double wall_seconds();
double thread_cpu_seconds();

}  // namespace paceline::tools

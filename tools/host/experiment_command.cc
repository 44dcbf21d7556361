// `paceline experiment`: compares two congestion controls on a running host, through pacelined.

#include "tools/host/experiment_command.h"
#include "dataplane/base/text/printable.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "cc/plugin/plugin.h"
#include "cc/registry.h"
#include "control/daemon/api/target.h"
#include "control/experiment/live/experiment_folder.h"
#include "control/experiment/live/plan/plan_reader.h"
#include "control/experiment/live/report/live_report.h"
#include "dataplane/config/scenario/document.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/cli/cli.h"
#include "tools/host/experiment_text.h"
#include "tools/service_link/daemon_request.h"

namespace paceline::tools {

namespace live = experiment::live;

namespace {

using daemon::Json;

struct ExperimentOptions {
  DaemonOptions daemon;
  std::string what;  // a plan file, a number or a folder
  std::string why;
  std::string html;
  bool aa = false;
  bool promote = false;
  bool override_verdict = false;
  bool detach = false;
  bool dry_run = false;
  bool quiet = false;
};

// The exit code of a command that waited for the end.
int code_of(const Json& experiment) {
  return experiment.value("state", std::string()) == "concluded" ? kExitGood : kExitFailed;
}

void show(const ExperimentOptions& options, const Json& answer, const std::string& text) {
  if (options.daemon.json) {
    fmt::print("{}\n", json_line(answer));
  } else {
    fmt::print("{}", printable_lines(text));
  }
}

std::string experiment_target(const std::string& id, const char* rest = "") {
  return "/v1/experiments/" + daemon::percent_encoded(id) + rest;
}

// Asks no daemon: loads a plug-in that the plan names into this process, as `paceline cc show`
// does.
int plan_experiment(const ExperimentOptions& options) {
  config::AlgorithmCatalogue catalogue;
  const auto load = [&catalogue](const std::string& path) {
    cc::Registered loaded = load_plugin(path);
    if (loaded.info == nullptr) return loaded;
    Json table = config::algorithm_json(*loaded.info);
    const cc::plugin::Plugin& plugin = *cc::plugin_of(loaded.info->id);
    table["plugin"] = config::origin_json({plugin.path, plugin.sha256});
    loaded.error = catalogue.add(table);
    return loaded;
  };
  config::Read<live::Plan> read = live::read_plan_file(options.what, cc::algorithms(), load);
  if (!read.ok()) return report_errors(read.errors);
  live::Plan plan =
      options.aa ? live::null_experiment_of(std::move(read.value)) : std::move(read.value);
  live::note_plugins(plan, catalogue);
  const live::Schedule schedule = live::make_schedule(plan);
  if (options.daemon.json) {
    fmt::print("{}", live::schedule_text(schedule));
  } else {
    fmt::print("{}", experiment_plan_text(plan, schedule));
  }
  return kExitGood;
}

std::string progress_words(const Json& experiment) {
  const Json progress = experiment.value("progress", Json::object());
  const Json estimate = progress.value("estimate", Json::object());
  if (const std::string trouble = progress.value("trouble", std::string()); !trouble.empty()) {
    return "waits: " + trouble;
  }
  return fmt::format("pair {} of {}, {}", progress.value("pairs_attempted", 0),
                     progress.value("pairs", 0), estimate_text(estimate));
}

// Shows progress until the end. The daemon runs the experiment, so leaving does no harm.
int follow(const ExperimentOptions& options, const std::string& id) {
  const Interrupt interrupt;
  ProgressLine line(options.quiet || options.daemon.json);
  int code = kExitGood;
  std::optional<Json> answer;
  while (!Interrupt::flag()) {
    answer = ask_daemon(options.daemon, "GET", experiment_target(id), nullptr, code);
    if (!answer) {
      line.clear();
      fmt::print(stderr, "The experiment may go on: paceline experiment status {}\n", id);
      return code;
    }
    const Json experiment = answer->value("experiment", Json::object());
    if (experiment.value("state", std::string()) != "running") {
      line.clear();
      show(options, *answer, experiment_status_text(experiment));
      return code_of(experiment);
    }
    const Json progress = experiment.value("progress", Json::object());
    line.show(progress.value("share", 0.0), progress.value("seconds_left_at_most", std::nan("")),
              progress_words(experiment));
    for (int i = 0; i < 5 && !Interrupt::flag(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  line.clear();
  fmt::print(stderr,
             "\nThe experiment goes on. Follow it with\n  paceline experiment status {0} --follow\n"
             "end it with\n  paceline experiment stop {0} --why REASON\n",
             id);
  return kExitInterrupted;
}

int run_experiment(const ExperimentOptions& options) {
  const config::Read<std::string> text =
      config::read_text_file(options.what, config::kLongestDocument);
  if (!text.ok()) return report_errors(text.errors);
  // Errors are reported here, before the daemon is asked; only the service knows a plug-in's
  // parameters.
  if (live::plugin_paths(text.value).empty()) {
    const config::Read<live::Plan> read =
        live::read_plan_text(text.value, options.what, cc::algorithms());
    if (!read.ok()) return report_errors(read.errors);
  }
  Json body{{"plan", text.value}, {"file", options.what}, {"why", options.why}};
  if (options.aa) body["aa"] = true;
  if (options.promote) body["promote"] = true;
  if (options.dry_run) body["dry_run"] = true;
  int code = kExitGood;
  const auto answer = ask_daemon(options.daemon, "POST", "/v1/experiments", body, code);
  if (!answer) return code;
  for (const Json& warning : answer->value("warnings", Json::array())) {
    if (warning.is_string()) fmt::print(stderr, "paceline: {}\n", warning.get<std::string>());
  }
  const Json experiment = answer->value("experiment", Json::object());
  const std::string id = experiment.value("id", std::string());
  const std::string digest = experiment.value("schedule_sha256", std::string());
  if (options.dry_run) {
    show(options, *answer, fmt::format("could begin now; schedule sha256 {}\n", digest));
    return kExitGood;
  }
  if (options.detach) {
    show(options, *answer,
         fmt::format("experiment {0} has begun; schedule sha256 {1}\n"
                     "  paceline experiment status {0} --follow\n",
                     id, digest));
    return kExitGood;
  }
  fmt::print(stderr, "Experiment {} has begun; schedule sha256 {}. Ctrl-C leaves it running.\n", id,
             digest);
  return follow(options, id);
}

// Only numbers are sent to the daemon.
std::vector<std::string> check_number(const std::string& what, const char* otherwise = "") {
  if (!what.empty() && what.find_first_not_of("0123456789") == std::string::npos) return {};
  return {fmt::format(
      "{}: expected the number of an experiment, as paceline experiment status lists them{}", what,
      otherwise)};
}

int experiment_status(const ExperimentOptions& options, bool to_the_end) {
  int code = kExitGood;
  if (options.what.empty()) {
    const auto answer = ask_daemon(options.daemon, "GET", "/v1/experiments", nullptr, code);
    if (answer) show(options, *answer, experiment_list_text(*answer));
    return code;
  }
  if (const auto errors = check_number(options.what); !errors.empty()) return report_errors(errors);
  if (to_the_end) return follow(options, options.what);
  const auto answer =
      ask_daemon(options.daemon, "GET", experiment_target(options.what), nullptr, code);
  if (answer) {
    show(options, *answer, experiment_status_text(answer->value("experiment", Json::object())));
  }
  return code;
}

int stop_experiment(const ExperimentOptions& options) {
  if (const auto errors = check_number(options.what); !errors.empty()) return report_errors(errors);
  int code = kExitGood;
  const auto answer = ask_daemon(options.daemon, "POST", experiment_target(options.what, "/stop"),
                                 {{"why", options.why}}, code);
  if (answer) {
    show(options, *answer,
         fmt::format("experiment {} ends; the champion is put back\n", options.what));
  }
  return code;
}

int promote_experiment(const ExperimentOptions& options) {
  if (const auto errors = check_number(options.what); !errors.empty()) return report_errors(errors);
  Json body{{"why", options.why}};
  if (options.override_verdict) body["override"] = true;
  int code = kExitGood;
  const auto answer =
      ask_daemon(options.daemon, "POST", experiment_target(options.what, "/promote"), body, code);
  if (answer) {
    const Json change = answer->value("change", Json::object());
    show(options, *answer,
         fmt::format("the candidate is in force by change {} of the journal; undo it with paceline "
                     "params revert\n",
                     change.value("number", 0)));
  }
  return code;
}

int write_page(const std::string& path, const std::string& page) {
  std::ofstream file(path, std::ios::binary);
  file << page;
  file.close();
  if (!file) return report_errors({path + ": cannot be written"});
  fmt::print(stderr, "paceline: report in {}\n", path);
  return kExitGood;
}

// Repeats the analysis from an experiment's files, without a daemon.
int report_of_folder(const ExperimentOptions& options) {
  const auto files = live::read_experiment_folder(options.what, cc::algorithms());
  if (!files.ok()) return report_errors(files.errors);
  const live::ExperimentFiles& f = files.value;
  const live::LiveAnalysis analysis =
      live::analyse_live(f.plan, f.schedule, f.blocks.records, f.circumstances);
  const live::LiveReport report{f.plan,
                                f.schedule,
                                f.blocks.records,
                                f.circumstances,
                                analysis,
                                PACELINE_VERSION,
                                "paceline experiment report " + options.what};
  const std::string json = live::live_report_json(report);
  if (options.daemon.json) {
    fmt::print("{}", json);
  } else {
    fmt::print("{}", experiment_report_text(Json::parse(json)));
  }
  return options.html.empty() ? kExitGood : write_page(options.html, live_report_page(report));
}

int report_experiment(const ExperimentOptions& options) {
  if (const auto errors = check_output(options.html); !errors.empty()) return report_errors(errors);
  std::error_code ignored;
  if (std::filesystem::is_directory(options.what, ignored)) return report_of_folder(options);
  if (const auto errors = check_number(options.what, ", or the folder with its files");
      !errors.empty()) {
    return report_errors(errors);
  }
  int code = kExitGood;
  const auto answer = ask_daemon(options.daemon, "GET",
                                 experiment_target(options.what, "/report.json"), nullptr, code);
  if (!answer) return code;
  show(options, *answer, experiment_report_text(*answer));
  if (options.html.empty()) return code;
  const daemon::Answer page =
      daemon::Client(daemon_socket(options.daemon)).get(experiment_target(options.what, "/report"));
  if (!page.good()) return report_errors({page.complaint()});
  return write_page(options.html, page.text);
}

config::Command add_experiment_part(const config::Command& command, const char* name,
                                    const char* help, const std::function<void()>& run) {
  config::Command sub = command.subcommand(name, help);
  sub.callback(run);
  return sub;
}

void say_why(const config::Command& sub, ExperimentOptions& options, const char* where) {
  sub.option("--why", options.why, where).required();
}

}  // namespace

void add_experiment_command(const config::Command& app, int& exit_code) {
  const config::Command command = app.subcommand(
      "experiment", "Compare two congestion controls on a running host, in blocks of time");
  command.require_subcommand();
  auto options = std::make_shared<ExperimentOptions>();
  auto follows = std::make_shared<bool>(false);

  const config::Command plan =
      add_experiment_part(command, "plan", "Check a plan and say what it will do; no daemon needed",
                          [options, &exit_code] { exit_code = plan_experiment(*options); });
  take_shipped_files(
      plan.option("FILE", options->what, "the plan: docs/experiments.md, \"Plan file\"")
          .required());
  plan.flag("--aa", options->aa, "put the champion in both arms, as run --aa does");
  plan.flag("--json", options->daemon.json, "print the schedule as it will be registered");

  const config::Command run =
      add_experiment_part(command, "run", "Begin an experiment, and follow it to its end",
                          [options, &exit_code] { exit_code = run_experiment(*options); });
  take_shipped_files(run.option("FILE", options->what, "the plan").required());
  run.flag("--aa", options->aa,
           "put the champion in both arms, for calibration: any effect is chance");
  run.flag("--promote", options->promote, "on a verdict of \"ship\" put the candidate in force");
  run.flag("--detach", options->detach, "begin it and return");
  run.flag("--dry-run", options->dry_run, "check it against the host, and begin nothing");
  run.flag("--quiet", options->quiet, "no progress");
  say_why(run, *options, "the reason, for the journal");
  options->daemon.add_to(run);

  const config::Command status = add_experiment_part(
      command, "status", "Show progress and interim results of an experiment, or list all",
      [options, follows, &exit_code] { exit_code = experiment_status(*options, *follows); });
  status.option("ID", options->what, "number of the experiment; without it, all are listed");
  status.flag("--follow", *follows, "follow it to its end");
  options->daemon.add_to(status);

  const config::Command stop =
      add_experiment_part(command, "stop", "End an experiment now, with the champion in force",
                          [options, &exit_code] { exit_code = stop_experiment(*options); });
  stop.option("ID", options->what, "its number").required();
  say_why(stop, *options, "the reason, for the report");
  options->daemon.add_to(stop);

  const config::Command promote =
      add_experiment_part(command, "promote", "Put the candidate of a finished experiment in force",
                          [options, &exit_code] { exit_code = promote_experiment(*options); });
  promote.option("ID", options->what, "its number").required();
  promote.flag("--override", options->override_verdict,
               "promote it although the verdict is not \"ship\"");
  say_why(promote, *options, "the reason, for the journal");
  options->daemon.add_to(promote);

  const config::Command report =
      add_experiment_part(command, "report", "Print results, with intervals, guards and balance",
                          [options, &exit_code] { exit_code = report_experiment(*options); });
  report
      .option("ID|FOLDER", options->what,
              "its number, or the folder of its files: repeats the analysis, without a daemon")
      .required();
  report.option("--html", options->html, "also write it as a page").type("FILE");
  options->daemon.add_to(report);

  command.footer(
      "Examples, in the order of use:\n"
      "  paceline experiment plan configs/experiments/live-incast.toml\n"
      "  paceline experiment run configs/experiments/live-incast.toml --aa --why \"how much is "
      "chance?\"\n"
      "  paceline experiment run configs/experiments/live-incast.toml --why \"incast at h4\"\n"
      "  paceline experiment report 2 --html /tmp/report.html\n"
      "  paceline experiment promote 2 --why \"better in every block\"\n"
      "  paceline params revert --why \"not after all\"\n"
      "\n"
      "The order of the arms is drawn from the plan's seed and registered before the first block.\n"
      "The interval shown is valid however often you look. If the candidate does harm, the\n"
      "service itself puts the champion back within a fraction of a second; it does so, too, when\n"
      "the daemon stops renewing the trial. At the end the champion is in force, except after\n"
      "--promote and a verdict of \"ship\".\n"
      "docs/experiments.md explains the statistics, docs/user-guide.md shows a whole experiment.\n"
      "Exit status: 0 good, 1 no daemon, or the experiment was stopped, tripped a guard or "
      "failed,\n"
      "2 bad input, 130 interrupted: the experiment continues.");
}

}  // namespace paceline::tools

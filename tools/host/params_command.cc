// `paceline params`: congestion-control parameters of a running host, through pacelined. Its
// journal records who changed what, when and why.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "control/daemon/api/target.h"
#include "dataplane/base/text/printable.h"
#include "dataplane/config/congestion_change.h"
#include "tools/cli/cli.h"
#include "tools/host/params_text.h"
#include "tools/service_link/daemon_request.h"

namespace paceline::tools {

namespace {

using daemon::Json;

struct ParamsOptions {
  DaemonOptions daemon;
  std::vector<std::string> names;  // get: parameters; set: NAME=VALUE; profile: its name
  std::vector<std::string> nics;
  std::string algorithm;
  std::string profile;
  std::string why;
  bool dry_run = false;
  std::int64_t to = -1;
  std::int64_t limit = 20;
};

int print(const ParamsOptions& options, const Json& answer, const std::string& text) {
  if (options.daemon.json) {
    fmt::print("{}\n", json_line(answer));
  } else {
    fmt::print("{}", printable_lines(text));
  }
  return kExitGood;
}

int get(const ParamsOptions& options) {
  std::string target = "/v1/params";
  if (options.nics.size() > 1) return report_errors({"--nic: give one NIC, or none for all"});
  if (!options.nics.empty()) target += "?nic=" + daemon::percent_encoded(options.nics.front());
  int code = kExitGood;
  const auto answer = ask_daemon(options.daemon, "GET", target, nullptr, code);
  return answer ? print(options, *answer, params_text(*answer, options.names)) : code;
}

int change(const ParamsOptions& options, const char* method, const char* target, Json body) {
  body["why"] = options.why;
  if (!options.nics.empty()) body["nics"] = options.nics;
  if (options.dry_run) body["dry_run"] = true;
  int code = kExitGood;
  const auto answer = ask_daemon(options.daemon, method, target, body, code);
  return answer ? print(options, *answer, params_change_text(*answer)) : code;
}

// Makes a plug-in's path absolute: the daemon runs in another folder.
std::string algorithm_named(const std::string& text) {
  if (!text.starts_with(config::kPluginPrefix)) return text;
  std::error_code error;
  const auto path = std::filesystem::absolute(text.substr(config::kPluginPrefix.size()), error);
  return error ? text : std::string(config::kPluginPrefix) + path.lexically_normal().string();
}

int set(const ParamsOptions& options) {
  std::vector<std::string> errors;
  Json params = assignments(options.names, errors);
  if (!errors.empty()) return report_errors(errors);
  Json body = Json::object();
  if (!params.empty()) body["params"] = std::move(params);
  if (!options.algorithm.empty()) body["algorithm"] = algorithm_named(options.algorithm);
  if (!options.profile.empty()) body["profile"] = options.profile;
  if (body.empty())
    return report_errors({"nothing to set: give NAME=VALUE, --algorithm or --profile"});
  return change(options, "PATCH", "/v1/params", std::move(body));
}

int profile(const ParamsOptions& options) {
  return change(options, "POST", "/v1/params/profile", {{"profile", options.profile}});
}

int history(const ParamsOptions& options) {
  int code = kExitGood;
  const auto answer =
      ask_daemon(options.daemon, "GET", fmt::format("/v1/params/history?limit={}", options.limit),
                 nullptr, code);
  return answer ? print(options, *answer, params_history_text(*answer)) : code;
}

int revert(const ParamsOptions& options) {
  Json body = Json::object();
  if (options.to >= 0) body["to"] = options.to;
  return change(options, "POST", "/v1/params/revert", std::move(body));
}

}  // namespace

void add_params_command(const config::Command& app, int& exit_code) {
  const config::Command command = app.subcommand(
      "params", "Congestion-control parameters of a running host: see, change, undo");
  command.require_subcommand();
  auto options = std::make_shared<ParamsOptions>();
  const auto add = [&](const char* name, const char* help, int (*run)(const ParamsOptions&)) {
    config::Command sub = command.subcommand(name, help);
    options->daemon.add_to(sub);
    sub.callback([options, &exit_code, run] { exit_code = run(*options); });
    return sub;
  };
  const auto say_why = [&](const config::Command& sub) {
    sub.option("--why", options->why, "the reason, for the journal").required();
    sub.flag("--dry-run", options->dry_run, "check it, and change nothing");
  };
  const auto name_nics = [&](const config::Command& sub) {
    sub.option("--nic", options->nics, "this NIC (default: all; repeatable, but not for get)")
        .one_by_one();
  };
  const config::Command see = add("get", "Show the parameters in force", get);
  see.option("NAME", options->names, "show only these parameters");
  name_nics(see);
  const config::Command put =
      add("set", "Change parameters or the algorithm: on all NICs named, or on none", set);
  put.option("NAME=VALUE", options->names, "see paceline cc show ALGORITHM");
  put.option("--algorithm", options->algorithm,
             "switch to this algorithm, or plugin:FILE, with the values of the profile");
  put.option("--profile", options->profile, "start from the values of this profile");
  name_nics(put);
  say_why(put);
  const config::Command named =
      add("profile", "Switch to another profile of the algorithm in force", profile);
  named.option("PROFILE", options->profile, "its name: see paceline cc show ALGORITHM").required();
  name_nics(named);
  say_why(named);
  const config::Command journal = add("history", "Who changed what, when and why", history);
  journal.option("--limit", options->limit, "the most changes to print, the newest ones")
      .shows_default();
  const config::Command undo =
      add("revert", "Undo the last change not undone yet, or with --to all after a change", revert);
  undo.option("--to", options->to,
              "restore the state right after this change of the journal; 0: before the first")
      .not_negative();
  say_why(undo);
  command.footer(
      "Examples:\n"
      "  paceline params get\n"
      "  paceline params set additive_increase_mbps=20 --why \"slow recovery on rail 3\"\n"
      "  paceline params set --algorithm cadence --nic h4 --why \"incast at h4\" --dry-run\n"
      "  paceline params set --algorithm plugin:/opt/plugins/mine.so --why \"see what it does\"\n"
      "  paceline params history\n"
      "  paceline params revert --why \"no better\"\n"
      "Exit status: 0 good, 1 no daemon, or it cannot do this, 2 bad input.");
}

}  // namespace paceline::tools

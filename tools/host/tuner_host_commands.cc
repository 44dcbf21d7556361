#include "tools/host/tuner_host_commands.h"
#include "dataplane/base/text/printable.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "tools/cli/cli.h"
#include "tools/host/tuner_text.h"
#include "tools/service_link/daemon_request.h"

namespace paceline::tools {

namespace {

struct TunerHostOptions {
  DaemonOptions daemon;
  std::string mode;
  std::string why;
  std::int64_t limit = 20;
};

int ask_tuner(const TunerHostOptions& options, const char* method, const std::string& target,
              const daemon::Json& body, std::string (*text)(const nlohmann::json&)) {
  int code = kExitGood;
  const auto answer = ask_daemon(options.daemon, method, target, body, code);
  if (!answer) return code;
  if (options.daemon.json) {
    fmt::print("{}\n", json_line(*answer));
  } else {
    fmt::print("{}", printable_lines(text(*answer)));
  }
  return kExitGood;
}

int tuner_status(const TunerHostOptions& options) {
  return ask_tuner(options, "GET", "/v1/tuner", nullptr, tuner_text);
}

int tuner_mode(const TunerHostOptions& options) {
  return ask_tuner(options, "PUT", "/v1/tuner", {{"mode", options.mode}, {"why", options.why}},
                   tuner_text);
}

int tuner_journal(const TunerHostOptions& options) {
  return ask_tuner(options, "GET", fmt::format("/v1/tuner/journal?limit={}", options.limit),
                   nullptr, tuner_journal_text);
}

}  // namespace

void add_tuner_host_commands(const config::Command& tuner, int& exit_code) {
  auto options = std::make_shared<TunerHostOptions>();
  const auto add = [&](const char* name, const char* help, int (*run)(const TunerHostOptions&)) {
    config::Command sub = tuner.subcommand(name, help);
    options->daemon.add_to(sub);
    sub.callback([options, &exit_code, run] { exit_code = run(*options); });
    return sub;
  };
  add("status", "status of a running host's tuner: its action, findings and advice", tuner_status);
  const config::Command mode = add("mode", "switch the tuner of a running host", tuner_mode);
  mode.option("MODE", options->mode, "off, advise or auto")
      .required()
      .one_of({"off", "advise", "auto"});
  mode.option("--why", options->why, "the reason, for the journal").required();
  const config::Command journal =
      add("journal", "actions of a running host's tuner, with their evidence", tuner_journal);
  journal.option("--limit", options->limit, "the most entries to print, the newest ones")
      .shows_default()
      .within(1, 1000);
}

}  // namespace paceline::tools

// `paceline explain`: what bounded a connection over the last seconds, in words.

#include <memory>
#include <string>

#include <fmt/format.h>

#include "control/daemon/api/target.h"
#include "tools/cli.h"
#include "tools/host/daemon_request.h"

namespace paceline::tools {

namespace {

using daemon::Json;

struct ExplainOptions {
  DaemonOptions daemon;
  std::string nic;
  std::uint32_t queue_pair = 0;
  double seconds = 10;
};

std::string explain_text(const Json& answer) {
  std::string text = answer.value("verdict", std::string()) + "\n";
  const auto findings = answer.find("findings");
  if (findings == answer.end() || !findings->is_array()) return text;
  for (const Json& finding : *findings) {
    text += "  - " + finding.value("sentence", std::string()) + "\n";
  }
  return text;
}

// The NIC that has the queue pair, where the user named none; empty: none or several, which is
// said.
std::string find_nic(const ExplainOptions& options, int& code) {
  const auto nics = ask_daemon(options.daemon, "GET", "/v1/nics", nullptr, code);
  if (!nics) return {};
  std::string found;
  for (const Json& nic : nics->value("nics", Json::array())) {
    const std::string name = nic.value("name", std::string());
    const auto pairs =
        ask_daemon(options.daemon, "GET",
                   "/v1/nics/" + daemon::percent_encoded(name) + "/queue_pairs", nullptr, code);
    if (!pairs) return {};
    for (const Json& pair : pairs->value("queue_pairs", Json::array())) {
      if (pair.value("number", 0U) != options.queue_pair) continue;
      if (!found.empty()) {
        code = report_errors({fmt::format("queue pair {} is at {} and at {}: say which with --nic",
                                          options.queue_pair, found, name)});
        return {};
      }
      found = name;
    }
  }
  if (found.empty()) {
    code =
        report_errors({fmt::format("no NIC has a queue pair {}; paceline top --table pairs --once "
                                   "shows all",
                                   options.queue_pair)});
  }
  return found;
}

int explain(ExplainOptions options) {
  int code = kExitGood;
  if (options.nic.empty()) options.nic = find_nic(options, code);
  if (options.nic.empty()) return code;
  const auto answer = ask_daemon(
      options.daemon, "GET",
      fmt::format("/v1/explain?nic={}&qp={}&seconds={}", daemon::percent_encoded(options.nic),
                  options.queue_pair, options.seconds),
      nullptr, code);
  if (!answer) return code;
  if (options.daemon.json) {
    fmt::print("{}\n", answer->dump());
  } else {
    fmt::print("{} of {}: {}", options.queue_pair, options.nic, explain_text(*answer));
  }
  return kExitGood;
}

}  // namespace

void add_explain_command(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("explain", "What bounded a connection over the last seconds, in words");
  auto options = std::make_shared<ExplainOptions>();
  command
      ->add_option("QP", options->queue_pair, "number of the queue pair, as paceline top shows it")
      ->required()
      ->check(CLI::Range(1U, 0xFFFFFFU));
  command->add_option("--nic", options->nic, "where several NICs have that number");
  command->add_option("--seconds", options->seconds, "so far back")
      ->check(CLI::Range(1.0, 60.0))
      ->capture_default_str();
  options->daemon.add_to(*command);
  command->footer(
      "Example:\n"
      "  paceline explain 17 --nic h0 --seconds 30\n"
      "Exit status: 0 good, 1 no daemon, 2 bad input.");
  command->callback([options, &exit_code] { exit_code = explain(*options); });
}

}  // namespace paceline::tools

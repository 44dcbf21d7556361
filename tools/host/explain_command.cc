// `paceline explain`: says in words what limited a connection over the last seconds.

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "control/daemon/api/target.h"
#include "dataplane/base/text/printable.h"
#include "tools/cli/cli.h"
#include "tools/cli/text_table.h"
#include "tools/service_link/daemon_request.h"

namespace paceline::tools {

namespace {

using daemon::Json;

// The daemon looks at queue pairs once a second.
constexpr auto kBetweenLooks = std::chrono::milliseconds(1200);

struct ExplainOptions {
  DaemonOptions daemon;
  std::string nic;
  std::uint32_t queue_pair = 0;
  double seconds = 10;
};

std::string explain_text(const Json& answer) {
  std::string text = printable(answer.value("verdict", std::string())) + "\n";
  const auto findings = answer.find("findings");
  if (findings == answer.end() || !findings->is_array()) return text;
  for (const Json& finding : *findings) {
    text += "  - " + printable(finding.value("sentence", std::string())) + "\n";
  }
  return text;
}

struct SeenPair {
  std::string nic;
  std::uint32_t number = 0;
  std::string peer;
  std::string state;
  std::string limiter;
  double sent = 0;   // of payload
  double bytes = 0;  // both ways
  // Growth since the previous sample.
  double sent_lately = 0;
  double grown = 0;
};

// All queue pairs of the NICs, or of the named one. Nothing, after an error message, if the daemon
// refuses.
std::optional<std::vector<SeenPair>> see_pairs(const ExplainOptions& options, int& code) {
  const auto nics = ask_daemon(options.daemon, "GET", "/v1/nics", nullptr, code);
  if (!nics) return std::nullopt;
  std::vector<SeenPair> out;
  for (const Json& nic : nics->value("nics", Json::array())) {
    const std::string name = nic.value("name", std::string());
    if (!options.nic.empty() && name != options.nic) continue;
    const auto pairs =
        ask_daemon(options.daemon, "GET",
                   "/v1/nics/" + daemon::percent_encoded(name) + "/queue_pairs", nullptr, code);
    if (!pairs) return std::nullopt;
    for (const Json& pair : pairs->value("queue_pairs", Json::array())) {
      out.push_back({name, pair.value("number", 0U), pair.value("peer", std::string()),
                     pair.value("state", std::string()), pair.value("limiter", std::string()),
                     pair.value("tx_bytes", 0.0),
                     pair.value("tx_bytes", 0.0) + pair.value("rx_bytes", 0.0)});
    }
  }
  return out;
}

// Lists the first ones: "there are 17, 18 of h0; 21 of h1".
std::string named_pairs(const std::vector<SeenPair>& pairs) {
  constexpr std::size_t kMostNamed = 16;
  if (pairs.empty()) return "there are none: no program has a connection";
  std::map<std::string, std::vector<std::uint32_t>> by_nic;
  for (std::size_t i = 0; i < std::min(pairs.size(), kMostNamed); ++i) {
    by_nic[pairs[i].nic].push_back(pairs[i].number);
  }
  std::vector<std::string> parts;
  for (const auto& [nic, numbers] : by_nic) {
    parts.push_back(fmt::format("{} of {}", fmt::join(numbers, ", "), printable(nic)));
  }
  return fmt::format("there {} {}{}", pairs.size() == 1 ? "is" : "are", fmt::join(parts, "; "),
                     pairs.size() > kMostNamed ? "; and others" : "");
}

// The NIC that has the queue pair. Reports an error if none has it, or several have.
std::string find_nic(const ExplainOptions& options, int& code) {
  const auto pairs = see_pairs(options, code);
  if (!pairs) return {};
  std::string found;
  for (const SeenPair& pair : *pairs) {
    if (pair.number != options.queue_pair) continue;
    if (!found.empty()) {
      code = report_errors({fmt::format("queue pair {} is on {} and on {}: choose with --nic",
                                        options.queue_pair, found, pair.nic)});
      return {};
    }
    found = pair.nic;
  }
  if (found.empty()) {
    code = report_errors(
        {fmt::format("no NIC has a queue pair {}; {}", options.queue_pair, named_pairs(*pairs))});
  }
  return found;
}

// Busiest queue pairs first: those that moved the most data between two samples of the daemon, one
// second apart. Sent bytes count first, because the explanation is about a sender's limits.
std::optional<std::vector<SeenPair>> by_traffic(const ExplainOptions& options, int& code) {
  auto before = see_pairs(options, code);
  if (!before || before->empty()) return before;
  std::this_thread::sleep_for(kBetweenLooks);
  auto pairs = see_pairs(options, code);
  if (!pairs) return pairs;
  for (SeenPair& pair : *pairs) {
    for (const SeenPair& then : *before) {
      if (then.nic != pair.nic || then.number != pair.number) continue;
      pair.sent_lately = pair.sent - then.sent;
      pair.grown = pair.bytes - then.bytes;
    }
  }
  std::stable_sort(pairs->begin(), pairs->end(), [](const SeenPair& a, const SeenPair& b) {
    return std::tuple(a.sent_lately, a.grown, a.bytes) >
           std::tuple(b.sent_lately, b.grown, b.bytes);
  });
  return pairs;
}

std::string pairs_text(const std::vector<SeenPair>& pairs) {
  constexpr std::size_t kMostShown = 20;
  TextTable table({{"NIC", true},
                   {"QP", false},
                   {"peer", true},
                   {"state", true},
                   {"Mbytes", false, 9},
                   {"lately", false, 9},
                   {"limited by", true}});
  for (std::size_t i = 0; i < std::min(pairs.size(), kMostShown); ++i) {
    const SeenPair& pair = pairs[i];
    table.add({{printable(pair.nic)},
               {std::to_string(pair.number)},
               {printable(pair.peer)},
               {printable(pair.state)},
               {fmt::format("{:.1f}", pair.bytes / 1e6)},
               {fmt::format("{:.1f}", pair.grown / 1e6)},
               {printable(pair.limiter)}});
  }
  std::string text;
  for (const std::string& line : table.lines(0, false)) text += line + "\n";
  if (pairs.size() > kMostShown) text += fmt::format("({} more)\n", pairs.size() - kMostShown);
  return text;
}

// Without a number: prints all queue pairs and chooses the busiest.
bool take_busiest(ExplainOptions& options, int& code) {
  const auto pairs = by_traffic(options, code);
  if (!pairs) return false;
  if (pairs->empty()) {
    code = report_errors({named_pairs(*pairs)});
    return false;
  }
  if (!options.daemon.json) fmt::print("{}\nthe busiest:\n", pairs_text(*pairs));
  options.nic = pairs->front().nic;
  options.queue_pair = pairs->front().number;
  return true;
}

int explain(ExplainOptions options) {
  int code = kExitGood;
  if (options.queue_pair == 0) {
    if (!take_busiest(options, code)) return code;
  } else if (options.nic.empty()) {
    options.nic = find_nic(options, code);
    if (options.nic.empty()) return code;
  }
  const auto answer = ask_daemon(
      options.daemon, "GET",
      fmt::format("/v1/explain?nic={}&qp={}&seconds={}", daemon::percent_encoded(options.nic),
                  options.queue_pair, options.seconds),
      nullptr, code);
  if (!answer) return code;
  if (options.daemon.json) {
    fmt::print("{}\n", json_line(*answer));
  } else {
    fmt::print("{} of {}: {}", options.queue_pair, printable(options.nic), explain_text(*answer));
  }
  return kExitGood;
}

}  // namespace

void add_explain_command(const config::Command& app, int& exit_code) {
  const config::Command command =
      app.subcommand("explain", "Say in words what limited a connection over the last seconds");
  auto options = std::make_shared<ExplainOptions>();
  command
      .option("QP", options->queue_pair,
              "number of the queue pair; without it all are listed, and the busiest is "
              "explained")
      .within(1U, 0xFFFFFFU);
  command.option("--nic", options->nic, "its NIC; needed if several have that number");
  command.option("--seconds", options->seconds, "how far back to look")
      .within(1.0, 60.0)
      .shows_default();
  options->daemon.add_to(command);
  command.footer(
      "Examples:\n"
      "  paceline explain\n"
      "  paceline explain 17 --nic h0 --seconds 30\n"
      "Exit status: 0 good, 1 no daemon, 2 bad input.");
  command.callback([options, &exit_code] { exit_code = explain(*options); });
}

}  // namespace paceline::tools

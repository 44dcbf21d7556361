#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "control/daemon/config/daemon_config.h"
#include "control/daemon/config/tuner_options.h"
#include "dataplane/config/scenario/document.h"
#include "dataplane/config/scenario/table_rows.h"
#include "dataplane/config/testbed/testbed_fields.h"
#include "dataplane/config/testbed/testbed_table.h"

namespace paceline::daemon {

using config::Diagnostics;
using config::Form;
using config::Read;
using config::ReadContext;
using config::Row;
using config::TomlMember;
using config::TomlNode;

namespace {

constexpr double kMs = 1e9;  // in picoseconds
constexpr double kSecond = 1e12;
constexpr std::array<std::string_view, 5> kLevels{"debug", "info", "warning", "error", "off"};

std::vector<Row> daemon_rows(ProcessConfig& c) {
  return {
      {{.path = "daemon.state",
        .form = Form::path,
        .meaning = "Folder of the state that outlives the daemon: journal, experiments, parameters "
                   "in force."},
       &c.state},
      {{.path = "daemon.user",
        .meaning = "User to become, with its groups and no capability, once the folders are made: "
                   "key and tokens must be readable by it."},
       &c.user},
      {{.path = "daemon.log_level",
        .form = Form::choice,
        .choices = kLevels,
        .meaning = "The lowest level that is logged. May change while the daemon runs."},
       &c.log_level}};
}
std::vector<Row> dataplane_rows(DataplaneConfig& c) {
  return {
      {{.path = "dataplane.testbed",
        .form = Form::path,
        .meaning =
            "Testbed file of the service to start. Empty: only attach to one that others run."},
       &c.testbed},
      {{.path = "dataplane.socket",
        .meaning =
            "Socket where programs attach; its control socket is beside it. Empty: `paceline.sock` "
            "in the runtime folder."},
       &c.socket},
      {{.path = "dataplane.program",
        .form = Form::path,
        .meaning = "The service's program. Empty: `paceline-dataplane` beside pacelined, in "
                   "`../bin`, in its "
                   "own build tree, or in PATH."},
       &c.program},
      {{.path = "dataplane.log",
        .form = Form::path,
        .meaning =
            "Its output is appended to this file. Empty: `dataplane.log` in the state folder."},
       &c.log},
      {{.path = "dataplane.end_with_daemon",
        .meaning = "SIGTERM to pacelined ends the service, too: for demonstrations."},
       &c.end_with_daemon}};
}
std::vector<Row> telemetry_rows(TelemetryConfig& c) {
  return {
      {{.path = "telemetry.interval",
        .min = 1 * kMs,
        .max = 1 * kSecond,
        .meaning =
            "Time between two reads of the service's telemetry; length of a slot of the history."},
       &c.interval},
      {{.path = "telemetry.fine_span",
        .min = 1 * kSecond,
        .max = 3600 * kSecond,
        .meaning =
            "How far back the history reaches. It is in memory; Prometheus keeps longer ones."},
       &c.fine_span},
      {{.path = "telemetry.stalled_after",
        .min = 2,
        .max = 1e6,
        .meaning = "Reads without news after which a NIC with bytes in flight is called stalled."},
       &c.stalled_after}};
}
std::vector<Row> api_rows(ApiConfig& c) {
  return {
      {{.path = "api.socket",
        .meaning = "Unix socket of the API. Empty: `pacelined.sock` in the runtime folder."},
       &c.socket},
      {{.path = "api.group",
        .meaning = "Its members may write, besides root and the daemon's user."},
       &c.group},
      {{.path = "api.world_readable", .meaning = "Any user of the machine may read."},
       &c.world_readable},
      {{.path = "api.address",
        .meaning = "Address for TCP, always with TLS and a token. Empty: none."},
       &c.address},
      {{.path = "api.port",
        .min = 0,
        .max = 65'535,
        .meaning = "TCP port, with `address`; 0: any."},
       &c.port},
      {{.path = "api.certificate",
        .form = Form::path,
        .meaning = "With `address`: PEM, the chain."},
       &c.certificate},
      {{.path = "api.key", .form = Form::path, .meaning = "With `address`: PEM, mode 0600."},
       &c.key},
      {{.path = "api.tokens", .form = Form::path, .meaning = "With `address`: tokens, mode 0600."},
       &c.tokens},
      {{.path = "api.metrics_port",
        .min = 0,
        .max = 65'535,
        .meaning =
            "Port of 127.0.0.1 with `/metrics` and `/healthz`, without TLS and token, for "
            "Prometheus; nothing else is there. Any user of the machine may read them. 0: none."},
       &c.metrics_port}};
}

constexpr std::array<std::string_view, 3> kModes{"off", "advise", "auto"};
std::vector<Row> tuner_rows(TunerConfig& c) {
  return {
      {{.path = "tuner.mode",
        .form = Form::choice,
        .choices = kModes,
        .meaning = "Whether the tuner only watches, advises, or acts. A mode set by PUT /v1/tuner "
                   "lasts until this key changes."},
       &c.mode},
      {{.path = "tuner.presets",
        .form = Form::path,
        .meaning = "Folder of presets, ALGORITHM.toml each (configs/presets). Empty: none."},
       &c.presets},
      {{.path = "tuner.kill_switch",
        .form = Form::path,
        .meaning = "While this file exists, the champion is in force and nothing is tried. Empty: "
                   "`tuner-stop` in the state folder."},
       &c.kill_switch},
      {{.path = "tuner.block",
        .min = 20 * kMs,
        .max = 600 * kSecond,
        .meaning = "Length of a block of a pair, without its first windows. Longer than what it "
                   "measures."},
       &c.block},
      {{.path = "tuner.wash",
        .min = 0,
        .max = 190 * kMs,
        .meaning = "Time left out after a change of parameters; with `guard` and one interval at "
                   "most 300 ms."},
       &c.wash},
      {{.path = "tuner.learn",
        .min = 10 * kMs,
        .max = 600 * kSecond,
        .meaning = "Time with the incumbent, to learn a workload."},
       &c.learn},
      {{.path = "tuner.guard",
        .min = 10 * kMs,
        .max = 290 * kMs,
        .meaning = "Time over which constraints are judged."},
       &c.guard},
      {{.path = "tuner.hold",
        .min = 1 * kSecond,
        .max = 600 * kSecond,
        .meaning = "If the daemon is silent for this long, the service puts the incumbent back."},
       &c.hold},
      {{.path = "tuner.explore_share",
        .min = 0,
        .max = 1,
        .meaning = "Share of all blocks that presets may take. 0: only the incumbent is refined."},
       &c.explore_share},
      {{.path = "tuner.queue_limit",
        .form = Form::bytes,
        .min = 0,
        .max = 1e12,
        .meaning =
            "Constraint on the last hop's queue, where it is emulated (dcqcn: half the buffer). "
            "0: none."},
       &c.queue_limit},
      {{.path = "tuner.delay_limit",
        .min = 0,
        .max = 1 * kSecond,
        .meaning = "Constraint on the round trip over the shortest (cadence: 1.5 T). 0: none."},
       &c.delay_limit},
      {{.path = "tuner.pause_limit",
        .min = 0,
        .max = 1,
        .meaning = "Constraint on the share of the time that a link is paused."},
       &c.pause_limit}};
}

class DaemonReader {
 public:
  DaemonReader(const TomlNode& root, DaemonConfig& out, const std::string& folder,
               Diagnostics& errors)
      : root_(root), out_(out), errors_(errors) {
    context_.folder = folder;
    context_.errors = &errors;
  }

  void read() {
    constexpr std::array<std::string_view, 6> kValid{"schema",    "daemon", "dataplane",
                                                     "telemetry", "api",    "tuner"};
    for (const TomlMember& m : root_.members) {
      if (m.key == "schema") continue;
      if (std::find(kValid.begin(), kValid.end(), m.key) == kValid.end()) {
        config::report_unknown_key(m, "", kValid, context_);
      } else if (!m.value.is_table()) {
        errors_.add(m.value.where, fmt::format("expected a table, [{}]", m.key));
      } else {
        read_table(m);
      }
    }
    check();
  }

 private:
  void table(const TomlMember& m, const std::vector<Row>& rows,
             const std::vector<std::string_view>& others = {}) {
    config::read_rows(m.value, m.key, rows, others, context_, [&](const TomlMember& other) {
      if (m.key == "telemetry") {
        errors_.add(other.where,
                    fmt::format("telemetry.{}: removed; allowed: fine_span, the one history "
                                "that the daemon keeps; Prometheus keeps longer ones",
                                other.key));
        return;
      }
      config::read_texts(other, m.key, context_,
                         [&](const TomlNode& item) { out_.dataplane.set.push_back(item.text); });
    });
  }

  void read_table(const TomlMember& m) {
    if (m.key == "daemon") return table(m, daemon_rows(out_.daemon));
    if (m.key == "dataplane") return table(m, dataplane_rows(out_.dataplane), {"set"});
    if (m.key == "telemetry") {
      return table(m, telemetry_rows(out_.telemetry), {"seconds_span", "minutes_span", "history"});
    }
    if (m.key == "tuner") return table(m, tuner_rows(out_.tuner));
    table(m, api_rows(out_.api));
  }

  // Position of a key, else of its table, else of the file.
  const config::Where& place(std::string_view in, std::string_view key) const {
    const TomlMember* const table = root_.find(in);
    if (table == nullptr) return root_.where;
    const TomlMember* const member = table->value.find(key);
    return member == nullptr ? table->where : member->value.where;
  }

  void check() {
    const ApiConfig& api = out_.api;
    for (const auto& [key, value] :
         {std::pair{"certificate", &api.certificate}, std::pair{"key", &api.key},
          std::pair{"tokens", &api.tokens}}) {
      if (!api.address.empty() && value->empty()) {
        errors_.add(
            place("api", "address"),
            fmt::format("api.address needs api.{}: TCP is served only with TLS and tokens", key));
      }
      if (api.address.empty() && !value->empty()) {
        errors_.add(place("api", key),
                    fmt::format("api.{} belongs to TCP: api.address is needed", key));
      }
    }
    const DataplaneConfig& dataplane = out_.dataplane;
    if (dataplane.testbed.empty() && !dataplane.set.empty()) {
      errors_.add(place("dataplane", "set"),
                  "dataplane.set belongs to a testbed: dataplane.testbed is needed");
    }
    const TelemetryConfig& t = out_.telemetry;
    if (t.fine_span.count < 2 * t.interval.count) {
      errors_.add(place("telemetry", "fine_span"),
                  "telemetry.fine_span: at least two times telemetry.interval");
    }
    check_tuner();
  }

  // The tuner's own rules, for windows as long as the telemetry's interval.
  void check_tuner() {
    if (root_.find("tuner") == nullptr) return;
    for (const std::string& problem : tuner_problems(out_)) {
      errors_.add(place("tuner", "block"), "[tuner] " + problem);
    }
  }

  const TomlNode& root_;
  DaemonConfig& out_;
  Diagnostics& errors_;
  ReadContext context_;
};

}  // namespace

Read<DaemonConfig> read_daemon_text(std::string_view text, const std::string& source,
                                    const std::string& folder) {
  return config::read_document(text, source, DaemonConfig{},
                               [&](TomlNode& root, DaemonConfig& out, Diagnostics& errors) {
                                 DaemonReader(root, out, folder, errors).read();
                               });
}

Read<DaemonConfig> read_daemon_file(const std::string& path) {
  Read<std::string> text = config::read_text_file(path, config::kLongestDocument);
  if (!text.ok()) return {{}, std::move(text.errors)};
  return read_daemon_text(text.value, path, config::folder_of(path));
}

std::vector<std::string> fixed_changes(const DaemonConfig& from, const DaemonConfig& to) {
  std::vector<std::string> out;
  ProcessConfig process = to.daemon;
  process.log_level = from.daemon.log_level;
  if (process != from.daemon) out.emplace_back("[daemon] (except log_level)");
  DataplaneConfig dataplane = to.dataplane;
  dataplane.end_with_daemon = from.dataplane.end_with_daemon;
  dataplane.testbed = from.dataplane.testbed;
  dataplane.program = from.dataplane.program;
  dataplane.set = from.dataplane.set;
  dataplane.log = from.dataplane.log;
  if (dataplane != from.dataplane) out.emplace_back("dataplane.socket");
  if (from.dataplane.testbed.empty() != to.dataplane.testbed.empty()) {
    out.emplace_back("dataplane.testbed (from attaching to starting, or back)");
  }
  TelemetryConfig telemetry = to.telemetry;
  telemetry.stalled_after = from.telemetry.stalled_after;
  if (telemetry != from.telemetry) out.emplace_back("[telemetry] (except stalled_after)");
  if (to.api != from.api) out.emplace_back("[api]");
  TunerConfig tuner = to.tuner;
  tuner.mode = from.tuner.mode;
  tuner.kill_switch = from.tuner.kill_switch;
  if (tuner != from.tuner) out.emplace_back("[tuner] (except mode and kill_switch)");
  return out;
}

std::string daemon_reference_markdown() {
  DaemonConfig c;
  std::string text = "| key | value | default | meaning |\n|---|---|---|---|\n";
  const auto append = [&text](const std::vector<Row>& rows) {
    for (const auto& [key, field] : rows) {
      const std::string allowed = config::allowed_text(key, field);
      const std::string value = config::value_text(key, field);
      text += fmt::format("| `{}` | {}{}{} | {} | {} |\n", key.path, config::type_text(key, field),
                          allowed.empty() ? "" : " ", allowed,
                          value.empty() || value == "\"\"" ? "" : "`" + value + "`", key.meaning);
    }
  };
  append(daemon_rows(c.daemon));
  append(dataplane_rows(c.dataplane));
  text +=
      "| `dataplane.set` | array of texts | | `KEY=VALUE` instead of what the testbed file says. "
      "|\n";
  append(telemetry_rows(c.telemetry));
  append(api_rows(c.api));
  append(tuner_rows(c.tuner));
  return text;
}

}  // namespace paceline::daemon

// `paceline agree`: the same run in virtual time and under the clock, compared.

#include <memory>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "control/experiment/design.h"
#include "control/experiment/results/results_file.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/config/toml/quantity.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/cli/cli.h"
#include "tools/emulate/agreement.h"
#include "tools/emulate/emulate_report.h"
#include "tools/run/scenario_run.h"

namespace paceline::tools {

namespace {

struct AgreeOptions {
  InputOptions input;
  std::string out;
  std::string window = "10ms";
  std::string warm_up = "250ms";
  std::string on_stop = "run-on";
  bool quiet = false;
};

struct AgreeSettings {
  Picos window{0};
  Picos warm_up{0};
  OnStop on_stop = OnStop::run_on;
};

// One scenario under one arm, both ways.
struct AgreeCell {
  std::string scenario;
  std::string arm;
  std::vector<std::uint32_t> senders;
  std::vector<AgreementWindow> virtual_time;
  std::vector<AgreementWindow> real_time;
  RealTimeReport report;
  Agreement agreement;
};

std::vector<std::string> read_settings(const AgreeOptions& options, AgreeSettings& settings) {
  std::vector<std::string> errors;
  const auto read = [&errors](const char* name, const std::string& text, Picos least, Picos& out) {
    const auto time = config::parse_time(text);
    if (!time.ok()) {
      errors.push_back(fmt::format("{} {}: {}", name, text, time.error));
    } else if (time.value < least) {
      errors.push_back(
          fmt::format("{} {}: allowed is {} us or more", name, text, least.count / 1'000'000));
    }
    out = time.value;
  };
  read("--window", options.window, picos_from_micros(100), settings.window);
  read("--warm-up", options.warm_up, Picos{0}, settings.warm_up);
  settings.on_stop = options.on_stop == "hold" ? OnStop::hold : OnStop::run_on;
  return errors;
}

std::vector<std::uint32_t> senders_of(const MessagePlan& plan, std::uint32_t hosts) {
  std::vector<bool> sends(hosts);
  for (const PlannedMessage& message : plan.messages) sends[message.src] = true;
  std::vector<std::uint32_t> out;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    if (sends[h]) out.push_back(h);
  }
  return out;
}

// Throws std::invalid_argument when the scenario cannot be built. False: interrupted.
bool run_cell(const PreparedScenario& prepared, const config::CcConfig& cc, std::uint64_t seed,
              const AgreeSettings& settings, WallClock& clock, AgreeCell& cell) {
  for (const bool real : {false, true}) {
    WindowRecorder recorder(settings.window);
    RunControl control;
    control.stop = &Interrupt::flag();
    control.sample_interval = recorder.distance();
    control.sample = [&](VirtualWorld& world, Picos at) {
      if (cell.senders.empty()) cell.senders = senders_of(world.plan(), world.hosts());
      recorder.look(world, at);
    };
    if (real) {
      control.real_time.clock = &clock;
      control.real_time.on_stop = settings.on_stop;
    }
    const ScenarioRun run = run_scenario(prepared, cc, seed, control);
    if (run.end == RunEnd::stopped) return false;
    if (run.result.status != experiment::RunStatus::ok) {
      throw std::runtime_error(fmt::format("{} under {} in {} time: {}", cell.scenario, cell.arm,
                                           real ? "real" : "virtual", run.result.reason));
    }
    (real ? cell.real_time : cell.virtual_time) = recorder.windows();
    if (real) cell.report = run.real_time;
  }
  const double allowed =
      queue_allowed(cell.report, prepared.scenario.fabric.rate, cell.senders.size(),
                    prepared.scenario.transport.payload_bytes);
  cell.agreement = compare(cell.virtual_time, cell.real_time, cell.report, cell.senders, allowed,
                           settings.warm_up);
  return true;
}

const char* verdict(const Agreement& agreement) {
  if (!agreement.enough()) return "too few windows without a stop to say";
  return agreement.close() ? "agree" : "DIFFER";
}

std::string cell_text(const AgreeCell& cell) {
  const Agreement& a = cell.agreement;
  std::string text = fmt::format("\n{}, {}: {}\n", cell.scenario, cell.arm, verdict(a));
  text += fmt::format("  {:<28} {:>12} {:>12} {:>11}\n", "median of windows", "virtual time",
                      "real time", "difference");
  const auto row = [&text](const char* name, const char* unit, double scale, double v, double r,
                           double difference) {
    text += fmt::format("  {:<28} {:>12.1f} {:>12.1f} {:>+9.1f} %\n",
                        fmt::format("{}, {}", name, unit), v / scale, r / scale, 100 * difference);
  };
  row("queue", "kB", 1e3, a.virtual_time.queue_bytes, a.real_time.queue_bytes, a.queue_difference);
  row("rate of a sender", "Mb/s", 1e6, a.virtual_time.rate, a.real_time.rate, a.rate_difference);
  row("rate of all", "Mb/s", 1e6, a.virtual_time.total_rate, a.real_time.total_rate,
      a.total_difference);
  text += fmt::format(
      "  windows: {} counted; left out: {} of the start, {} of {} in which the host stopped us\n",
      a.counted, a.warm_up, a.stopped, a.windows - a.warm_up);
  return text + real_time_text(cell.report);
}

nlohmann::ordered_json windows_json(const std::vector<AgreementWindow>& windows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const AgreementWindow& window : windows) {
    json.push_back({{"begin_ps", window.begin.count},
                    {"end_ps", window.end.count},
                    {"queue_bytes", window.queue_bytes},
                    {"rates_bps", window.rates}});
  }
  return json;
}

std::string cells_json(const std::vector<AgreeCell>& cells) {
  nlohmann::ordered_json json;
  json["schema"] = 1;
  json["kind"] = "paceline agreement";
  for (const AgreeCell& cell : cells) {
    const Agreement& a = cell.agreement;
    nlohmann::ordered_json& out = json["runs"].emplace_back();
    out["scenario"] = cell.scenario;
    out["arm"] = cell.arm;
    out["senders"] = cell.senders;
    out["verdict"] = !a.enough() ? "unknown" : a.close() ? "agree" : "differ";
    out["windows"] = {
        {"all", a.windows}, {"warm_up", a.warm_up}, {"stopped", a.stopped}, {"counted", a.counted}};
    for (const auto& [name, side] :
         {std::pair{"virtual_time", &a.virtual_time}, {"real_time", &a.real_time}}) {
      out[name] = {{"queue_bytes", side->queue_bytes},
                   {"rate_bps", side->rate},
                   {"total_rate_bps", side->total_rate}};
    }
    out["queue_allowed_bytes"] = a.queue_allowed;
    out["difference"] = {{"queue", a.queue_difference},
                         {"rate", a.rate_difference},
                         {"total_rate", a.total_difference}};
    out["clock"] = real_time_json(cell.report);
    for (const HostStop& stop : cell.report.stops) {
      out["stops"].push_back({stop.begin.count, stop.end.count});
    }
    out["series"]["virtual_time"] = windows_json(cell.virtual_time);
    out["series"]["real_time"] = windows_json(cell.real_time);
  }
  return json.dump(1) + "\n";
}

int run(const AgreeOptions& options) {
  AgreeSettings settings;
  if (const auto errors = read_settings(options, settings); !errors.empty()) {
    return report_errors(errors);
  }
  config::ReaderOptions reader = reader_options();
  reader.overrides = options.input.overrides();
  auto read = config::read_experiment_file(options.input.file, reader);
  if (!read.ok()) return report_errors(read.errors);
  if (const auto errors = check_output(options.out); !errors.empty()) return report_errors(errors);
  TscWallClock clock;
  const Interrupt interrupt;
  std::vector<AgreeCell> cells;
  bool differ = false;
  bool unknown = false;
  for (const config::Scenario& scenario : read.value.scenarios) {
    auto prepared = prepare(scenario);
    if (!prepared.ok()) return report_errors(prepared.errors);
    for (const config::Arm& arm : read.value.arms) {
      AgreeCell& cell = cells.emplace_back();
      cell.scenario = scenario.name;
      cell.arm = arm.name;
      try {
        if (!run_cell(prepared.value, arm.cc, experiment::repetition_seed(read.value.seed, 0),
                      settings, clock, cell)) {
          return kExitInterrupted;
        }
      } catch (const std::invalid_argument& error) {
        return report_errors({options.input.file + ": " + error.what()});
      }
      differ = differ || (cell.agreement.enough() && !cell.agreement.close());
      unknown = unknown || !cell.agreement.enough();
      if (!options.quiet) fmt::print("{}", cell_text(cell));
    }
  }
  try {
    if (!options.out.empty()) experiment::write_results_file(options.out, cells_json(cells));
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  return differ ? kExitFailed : unknown ? kExitUnknown : kExitGood;
}

}  // namespace

void add_agree_command(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<AgreeOptions>();
  const config::Command command = app.subcommand(
      "agree", "run an experiment in virtual time and in real time, and compare the two");
  options->input.add_to(command, "experiment (TOML) slow enough for this machine to time", true);
  command
      .option("--window", options->window,
              "compare medians over windows of this length (default: 10ms)")
      .type("TIME");
  command
      .option("--warm-up", options->warm_up,
              "leave out windows in this time at the start (default: 250ms)")
      .type("TIME");
  command
      .option("--on-stop", options->on_stop,
              "when the host stops this process: run-on (default) or hold the world's clock; "
              "see paceline emulate --help")
      .type("WHAT")
      .one_of({"run-on", "hold"});
  command.option("--out", options->out, "write everything, every window too, as JSON")
      .type("FILE.json");
  command.flag("-q,--quiet", options->quiet, "print nothing but errors");
  command.footer(
      "Every scenario runs under every arm, once in virtual time and once under this machine's\n"
      "clock: the same file, engines, switches and seed. In both runs the depth of the queues and\n"
      "the rate of every sender are sampled 64 times a window. A window in which the host stopped\n"
      "this process for more than 100 us is left out and counted (none with --on-stop hold). The\n"
      "runs agree if the medians over the other windows, of the queue, of each sender's rate and "
      "of\n"
      "the rate of all, are within 10 %. For a queue, a difference of 2 % of the unloaded round\n"
      "trip's bytes, or of a packet of each sender, is always allowed.\n"
      "A run lasts as long as the scenario's duration. It is closest with a core of its own:\n"
      "  chrt -f 50 paceline agree configs/experiments/real-time.toml\n"
      "  paceline agree configs/experiments/real-time.toml --on-stop hold --out agree.json\n"
      "Exit status: 0 they agree, 1 they differ or a run failed, 2 bad input, 3 the host stopped\n"
      "the process too often for a verdict, 130 interrupted.");
  command.callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace paceline::tools

// `paceline job`: what jobs send, and how one runs over verbs.

#include <fmt/format.h>

#include <memory>

#include "control/experiment/results/results_file.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/cli/cli.h"
#include "tools/job/plan_export.h"
#include "tools/job/traffic_report.h"
#include "tools/job/traffic_task.h"
#include "tools/job/verbs/job_run_command.h"

namespace paceline::tools {

namespace {

int run_traffic(const TrafficOptions& options, const std::string& json) {
  const config::Read<TrafficTask> task = options.task();
  if (!task.ok()) return report_errors(task.errors);
  if (const auto unwritable = check_output(json); !unwritable.empty()) {
    return report_errors(unwritable);
  }
  const auto rows = workload::training_traffic(task.value.model, task.value.parallelism,
                                               task.value.step, task.value.accounting);
  try {
    if (!json.empty()) experiment::write_results_file(json, traffic_json(task.value, rows));
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  fmt::print("{}", traffic_text(task.value, rows));
  return kExitGood;
}

void add_traffic(const config::Command& parent, int& exit_code) {
  auto options = std::make_shared<TrafficOptions>();
  auto json = std::make_shared<std::string>();
  const config::Command command = parent.subcommand(
      "traffic", "what training a model sends in a step, by kind of parallelism, in closed form");
  options->add_to(command);
  command.option("--json", *json, "also write the table as JSON").type("FILE.json");
  command.footer(
      "Dimensions:\n"
      "  data         gradients, and weights where they are sharded, of data and context ranks\n"
      "  expert data  the same for the routed experts\n"
      "  tensor       activations within a layer, of every micro-batch\n"
      "  pipeline     activations and their gradients from stage to stage\n"
      "  expert       tokens to their experts and back\n"
      "  context      keys and values around the ring\n"
      "Ranks are numbered tensor first, then context, data and pipeline. They fill server after\n"
      "server; a hop between ranks of a server uses NVLink. Units of bytes are\n"
      "decimal; a call is a collective or a send.\n"
      "Examples:\n"
      "  paceline job traffic --model llama3-70b --tp 8 --pp 4 --dp 16 --micro-batches 16 \\\n"
      "      --tokens 8192 --sequence-parallel --zero 1\n"
      "  paceline job traffic --model llama-7b --dp 64 --zero 3 --rate '200 Gb/s'\n"
      "  paceline job traffic --model deepseek-v3 --pp 16 --dp 128 --ep 64 --micro-batches 60\n"
      "  paceline job traffic --layers 80 --parameters 70e9 --hidden 8192 --tp 8 --pp 8 --dp 16 "
      "\\\n"
      "      --step-tokens 876270 --steps 178027 --accounting naive-mesh\n"
      "Exit status: 0 good, 2 bad input.");
  command.callback([options, json, &exit_code] { exit_code = run_traffic(*options, *json); });
}

struct ExportOptions {
  InputOptions input;
  std::string format;
  std::string out;
  workload::PlanDrops drops;
};

int run_export(const ExportOptions& options) {
  if (options.drops.computing && options.format == "goal") {
    return report_errors({"--drop-computing: GOAL has computing; allowed with cm and hpcc"});
  }
  if (options.drops.waits && options.format == "goal") {
    return report_errors({"--drop-waits: GOAL has waits; allowed with cm and hpcc"});
  }
  config::ReaderOptions reader = reader_options();
  reader.overrides = options.input.overrides();
  auto read = config::read_scenario_file(options.input.file, reader);
  if (!read.ok()) return report_errors(read.errors);
  const auto prepared = prepare(std::move(read.value));
  if (!prepared.ok()) return report_errors(prepared.errors);
  if (const auto unwritable = check_output(options.out); !unwritable.empty()) {
    return report_errors(unwritable);
  }
  for (const std::string& warning : prepared.value.inputs.warnings) {
    fmt::print(stderr, "paceline: {}\n", warning);
  }
  auto exported = export_plan(prepared.value, options.format, options.drops);
  if (!exported.ok()) return report_errors(exported.errors);
  try {
    experiment::write_results_file(options.out, exported.value.text);
  } catch (const experiment::ResultsFileError& error) {
    return report_errors(error.errors());
  }
  fmt::print("{}: {} messages, {}\n", options.out, exported.value.messages,
             si_bytes(exported.value.bytes));
  if (exported.value.dropped_waits != 0) {
    fmt::print(stderr, "paceline: {} waits are left out\n", exported.value.dropped_waits);
  }
  return kExitGood;
}

void add_export(const config::Command& parent, int& exit_code) {
  auto options = std::make_shared<ExportOptions>();
  const config::Command command = parent.subcommand(
      "export",
      "write the messages of a scenario, whatever its workload, in the format of another tool");
  options->input.add_to(command, "scenario (TOML; docs/scenarios.md lists every key)", true);
  command
      .option("--format", options->format,
              "cm: connection matrix of htsim; goal: GOAL schedule; hpcc: flow list of the "
              "HPCC simulator")
      .type("FORMAT")
      .required()
      .one_of({"cm", "goal", "hpcc"});
  command.option("--out", options->out, "the file to write").type("FILE").required();
  command.flag("--drop-computing", options->drops.computing,
               "leave out what cm and hpcc cannot express: times of computing");
  command.flag("--drop-waits", options->drops.waits,
               "leave out what messages wait for: with hpcc all waits, with cm those that "
               "need a second trigger of a flow");
  command.footer(
      "What messages wait for becomes\n"
      "  cm     triggers: a receiver's or a sender's end of a flow, and barriers of several\n"
      "  goal   requires; computing becomes calc, in nanoseconds\n"
      "  hpcc   nothing\n"
      "Nodes are the ranks of workload.placement = \"packed\". Traffic classes remain in hpcc, "
      "queue pairs\n"
      "in cm, where the messages of one have msg.\n"
      "Examples:\n"
      "  paceline job export configs/scenarios/incast-16.toml --format hpcc --out incast.flows\n"
      "  paceline job export configs/scenarios/ring.toml --set workload.start_jitter=0us \\\n"
      "      --format cm --out ring.cm\n"
      "  paceline job export configs/scenarios/ring.toml --format goal --out ring.goal\n"
      "A scenario reads cm as workload.kind = \"htsim\", goal as a job of that format, hpcc as "
      "\"flows\".\n"
      "Exit status: 0 good, 2 bad input.");
  command.callback([options, &exit_code] { exit_code = run_export(*options); });
}

}  // namespace

void add_job_command(const config::Command& app, int& exit_code) {
  const config::Command command =
      app.subcommand("job",
                     "what a training job sends, by formula or message by message; and a job "
                     "in real time, over verbs");
  command.require_subcommand();
  add_traffic(command, exit_code);
  add_export(command, exit_code);
  add_job_run(command, exit_code);
}

}  // namespace paceline::tools

// `paceline job`: what jobs send, without running them.

#include <fmt/format.h>

#include <memory>

#include "control/experiment/results_file.h"
#include "tools/cli/cli.h"
#include "tools/job/traffic_report.h"
#include "tools/job/traffic_task.h"

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

void add_traffic(CLI::App& parent, int& exit_code) {
  auto options = std::make_shared<TrafficOptions>();
  auto json = std::make_shared<std::string>();
  CLI::App* command = parent.add_subcommand(
      "traffic", "what training a model sends in a step, by kind of parallelism, in closed form");
  options->add_to(*command);
  command->add_option("--json", *json, "also write the table as JSON")->type_name("FILE.json");
  command->footer(
      "Dimensions:\n"
      "  data         gradients, and weights where they are sharded, of data and context ranks\n"
      "  expert data  the same of the routed experts\n"
      "  tensor       activations within a layer, of every micro-batch\n"
      "  pipeline     activations and their gradients from stage to stage\n"
      "  expert       tokens to their experts and back\n"
      "  context      keys and values around the ring\n"
      "Ranks are numbered tensor first, then context, data and pipeline, and fill server after "
      "server;\n"
      "a hop between ranks of a server is NVLink's. Bytes are decimal, calls collectives or "
      "sends.\n"
      "Examples:\n"
      "  paceline job traffic --model llama3-70b --tp 8 --pp 4 --dp 16 --micro-batches 16 \\\n"
      "      --tokens 8192 --sequence-parallel --zero 1\n"
      "  paceline job traffic --model llama-7b --dp 64 --zero 3 --rate '200 Gb/s'\n"
      "  paceline job traffic --model deepseek-v3 --pp 16 --dp 128 --ep 64 --micro-batches 60\n"
      "  paceline job traffic --layers 80 --parameters 70e9 --hidden 8192 --tp 8 --pp 8 --dp 16 "
      "\\\n"
      "      --step-tokens 876270 --steps 178027 --accounting naive-mesh\n"
      "Exit status: 0 good, 2 bad input.");
  command->callback([options, json, &exit_code] { exit_code = run_traffic(*options, *json); });
}

}  // namespace

void add_job_command(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("job", "what a training job sends: by formula, or message by message");
  command->require_subcommand(1);
  add_traffic(*command, exit_code);
}

}  // namespace paceline::tools

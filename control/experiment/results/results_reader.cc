// Reads and checks a results file. Every error is collected; keys that this build does not know are
// ignored (an additive change keeps the schema), except metrics, which nothing could interpret.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <tuple>

#include "control/experiment/results/detail_json.h"
#include "control/experiment/results/results_file.h"
#include "control/experiment/text/json_reader.h"

namespace paceline::experiment {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxRepetitions = 100'000;

AnalysisPlan read_plan(JsonReader& in, const Json& root) {
  AnalysisPlan plan;
  plan.name = in.string(root, "", "experiment");
  plan.seed = in.whole(root, "", "seed");
  plan.repetitions =
      static_cast<std::uint32_t>(in.whole(root, "", "repetitions", 1, kMaxRepetitions));
  plan.resamples = static_cast<std::uint32_t>(in.whole(root, "", "resamples", 100, 10'000'000));
  const std::size_t before = in.errors().size();
  plan.confidence = in.number(root, "", "confidence");
  if (in.errors().size() == before && !(plan.confidence >= 0.5 && plan.confidence <= 0.9999)) {
    in.error("confidence", fmt::format("{} is outside 0.5..0.9999", plan.confidence));
  }
  plan.scenarios = in.names(root, "", "scenarios", 1);
  plan.arms = in.names(root, "", "arms", 1);
  for (const Json& item : in.array(root, "", "summary_plan")) {
    const std::string path = fmt::format("summary_plan[{}]", plan.summaries.size());
    SummarySpec summary;
    summary.label = in.string(item, path, "label");
    const std::string metric = in.string(item, path, "metric");
    if (const auto known = metric_by_name(metric)) {
      summary.metric = *known;
    } else {
      in.error(path + ".metric", fmt::format("unknown metric '{}'", metric));
    }
    summary.scenarios = in.names(item, path, "scenarios", 1);
    for (const std::string& name : summary.scenarios) {
      if (std::find(plan.scenarios.begin(), plan.scenarios.end(), name) == plan.scenarios.end()) {
        in.error(path + ".scenarios", fmt::format("'{}' is not among the scenarios", name));
      }
    }
    plan.summaries.push_back(std::move(summary));
  }
  return plan;
}

void read_metrics(JsonReader& in, const Json& run, const std::string& path,
                  const std::vector<Metric>& present, MetricValues& values) {
  const Json& metrics = in.object(run, path, "metrics");
  for (const Metric metric : present) {
    const std::string name(spec_of(metric).name);
    const std::string where = path + ".metrics";
    const Json* value = in.member(
        metrics, where, name.c_str(), [](const Json& v) { return v.is_number() || v.is_null(); },
        "a number or null");
    if (value != nullptr && value->is_number()) values[metric] = value->get<double>();
  }
}

RunResult read_run(JsonReader& in, const Json& item, const std::string& path,
                   const AnalysisPlan& plan, const std::vector<Metric>& present) {
  RunResult run;
  run.scenario = in.one_of(item, path, "scenario", plan.scenarios);
  run.arm = in.one_of(item, path, "arm", plan.arms);
  run.repetition =
      static_cast<std::uint32_t>(in.whole(item, path, "repetition", 0, plan.repetitions - 1));
  run.seed = in.whole(item, path, "seed");
  const std::string status = in.one_of(item, path, "status", {"ok", "unfinished", "failed"});
  if (status == "unfinished") run.status = RunStatus::unfinished;
  if (status == "failed") run.status = RunStatus::failed;
  run.reason = in.string(item, path, "reason");
  run.messages_started = in.whole(item, path, "messages_started");
  run.messages_completed = in.whole(item, path, "messages_completed");
  if (run.messages_completed > run.messages_started) {
    in.error(
        path + ".messages_completed",
        fmt::format("{} completed of {} started", run.messages_completed, run.messages_started));
  }
  run.hops = in.whole(item, path, "hops");
  run.events = in.whole(item, path, "events");
  run.simulated = {static_cast<std::int64_t>(
      in.whole(item, path, "simulated_ps", 0, std::numeric_limits<std::int64_t>::max()))};
  const std::size_t before = in.errors().size();
  const std::string hash = in.string(item, path, "trace_hash");
  const char* end = hash.data() + hash.size();
  const bool prefixed = hash.size() == 18 && hash.starts_with("0x");
  if (in.errors().size() == before &&
      (!prefixed || std::from_chars(hash.data() + 2, end, run.trace_hash, 16).ptr != end)) {
    in.error(path + ".trace_hash", fmt::format("'{}' is not 0x and 16 hexadecimal digits", hash));
  }
  read_metrics(in, item, path, present, run.metrics);
  return run;
}

// Metrics that the file declares: fewer than ours in a file from before one was added.
std::vector<Metric> read_metric_table(JsonReader& in, const Json& root,
                                      const std::string& version) {
  std::vector<Metric> present;
  std::size_t index = 0;
  for (const Json& item : in.array(root, "", "metrics")) {
    const std::string path = fmt::format("metrics[{}]", index++);
    const std::size_t before = in.errors().size();
    const std::string name = in.string(item, path, "name");
    if (in.errors().size() != before) continue;
    if (const auto metric = metric_by_name(name)) {
      present.push_back(*metric);
    } else {
      in.error(
          path + ".name",
          fmt::format("unknown metric '{}' (the file was of results version {})", name, version));
    }
  }
  return present;
}

std::string joined(const std::vector<std::string>& errors) {
  return fmt::format("{}", fmt::join(errors, "\n"));
}

}  // namespace

ResultsFileError::ResultsFileError(std::vector<std::string> errors)
    : std::runtime_error(joined(errors)), errors_(std::move(errors)) {}

Results parse_results(std::string_view text, std::string_view source) {
  const config::Read<Json> read =
      JsonReader::document(text, source, "a results file of paceline ab");
  if (!read.ok()) throw ResultsFileError(read.errors);
  const Json& root = read.value;
  JsonReader in(source);
  const auto give_up = [&](const std::string& where, const std::string& what) {
    in.error(where, what);
    throw ResultsFileError(in.errors());
  };
  // Without the right schema, the rest of the file has no known meaning.
  const std::uint64_t schema = in.whole(root, "", "schema");
  if (!in.errors().empty()) throw ResultsFileError(in.errors());
  if (schema != kResultsSchema) {
    give_up("schema",
            fmt::format("this build reads schema {}, the file has {}", kResultsSchema, schema));
  }
  const std::string kind = in.string(root, "", "kind");
  if (!in.errors().empty()) throw ResultsFileError(in.errors());
  if (kind != kResultsKind) give_up("kind", fmt::format("'{}' is not '{}'", kind, kResultsKind));

  Results results;
  results.version = in.string(root, "", "version");
  results.plan = read_plan(in, root);
  results.configuration = in.string(root, "", "configuration");
  const std::vector<Metric> present = read_metric_table(in, root, results.version);
  std::set<std::tuple<std::string, std::string, std::uint32_t>> seen;
  for (const Json& item : in.array(root, "", "runs")) {
    const std::string path = fmt::format("runs[{}]", results.runs.size());
    const std::size_t before = in.errors().size();
    if (!item.is_object()) {
      in.error(path, fmt::format("expected an object, found {}", JsonReader::kind_of(item)));
      results.runs.emplace_back();
      continue;
    }
    RunResult run = read_run(in, item, path, results.plan, present);
    if (in.errors().size() == before &&
        !seen.emplace(run.scenario, run.arm, run.repetition).second) {
      in.error(path, fmt::format("a second run of scenario '{}', arm '{}', repetition {}",
                                 run.scenario, run.arm, run.repetition));
    }
    results.runs.push_back(std::move(run));
  }
  results.detail = read_detail(in, root, results.plan);
  if (!in.errors().empty()) throw ResultsFileError(in.errors());
  return results;
}

Results read_results_file(const std::string& path) {
  constexpr std::size_t kLongestResults = std::size_t{256} << 20;  // a device may never end
  const config::Read<std::string> text = config::read_text_file(path, kLongestResults);
  if (!text.ok()) throw ResultsFileError(text.errors);
  return parse_results(text.value, path);
}

}  // namespace paceline::experiment

#include "control/tuner/search_record.h"

#include <algorithm>
#include <numeric>

#include "control/experiment/text/json_writer.h"
#include "control/experiment/text/number_text.h"

namespace paceline::tuner {

namespace {

using experiment::JsonWriter;

constexpr auto kLine = JsonWriter::Layout::compact;

void write_score(JsonWriter& json, std::string_view name, const Score& score) {
  json.key(name);
  json.begin_object(kLine);
  json.member("objective", score.objective);
  json.member("queue_max_bytes", score.queue_bytes);
  json.member("within_limits", score.feasible());
  if (!score.feasible()) {
    json.member("excess", score.excess);
    json.member("broken", std::string_view(score.broken_limit));
  }
  json.end_object();
}

}  // namespace

std::vector<std::size_t> pareto_front(std::span<const Candidate> candidates) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].score.feasible()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Score& x = candidates[a].score;
    const Score& y = candidates[b].score;
    if (x.objective != y.objective) return x.objective > y.objective;
    return x.queue_bytes < y.queue_bytes;
  });
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    if (front.empty() ||
        candidates[i].score.queue_bytes < candidates[front.back()].score.queue_bytes) {
      front.push_back(i);
    }
  }
  return front;
}

std::vector<std::size_t> finalists(std::span<const Candidate> candidates, std::size_t count) {
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return better(candidates[a].score, candidates[b].score);
  });
  std::vector<std::size_t> chosen;
  for (const std::size_t i : order) {
    if (chosen.size() < count && candidates[i].score.feasible()) chosen.push_back(i);
  }
  if (!candidates.empty() && std::find(chosen.begin(), chosen.end(), 0U) == chosen.end()) {
    chosen.push_back(0);
  }
  return chosen;
}

const Candidate* winner(std::span<const Candidate> candidates) {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates) {
    if (!candidate.validated || !candidate.validation.feasible()) continue;
    if (best == nullptr || better(candidate.validation, best->validation)) best = &candidate;
  }
  return best;
}

std::string record_text(const SearchRecord& record, const cc::AlgorithmInfo& algorithm,
                        const SearchSpace& space) {
  JsonWriter json;
  json.begin_object();
  json.member("schema", std::uint64_t{1});
  json.member("kind", std::string_view("paceline search"));
  json.member("version", std::string_view(record.version));
  json.member("command", std::string_view(record.command));
  json.member("algorithm", std::string_view(record.algorithm));
  json.member("profile", std::string_view(record.profile));
  json.member("seed", record.seed);
  json.list("scenarios", record.scenarios);
  json.list("search_seeds", record.search_seeds);
  json.list("validation_seeds", record.validation_seeds);
  json.key("limits");
  json.begin_object(kLine);
  for (const Limit& limit : record.limits) {
    json.member(experiment::spec_of(limit.metric).name, limit.most);
  }
  json.end_object();
  json.key("space");
  json.begin_array();
  for (std::size_t d = 0; d < space.size(); ++d) {
    const Dimension& dimension = space.dimensions()[d];
    json.begin_object(kLine);
    json.member("parameter", space.spec_of(d).name);
    json.member("low", dimension.low);
    json.member("high", dimension.high);
    json.member("scale", std::string_view(dimension.log_scale ? "log" : "linear"));
    json.end_object();
  }
  json.end_array();
  json.key("candidates");
  json.begin_array();
  for (const Candidate& candidate : record.candidates) {
    json.begin_object(kLine);
    json.key("values");
    json.begin_object(kLine);
    for (const Dimension& dimension : space.dimensions()) {
      json.member(algorithm.params[dimension.param].name, candidate.values[dimension.param]);
    }
    json.end_object();
    write_score(json, "search", candidate.score);
    if (candidate.validated) write_score(json, "validation", candidate.validation);
    json.end_object();
  }
  json.end_array();
  json.list("pareto_front", pareto_front(record.candidates));
  const Candidate* best = winner(record.candidates);
  if (best != nullptr) {
    json.member("winner", static_cast<std::uint64_t>(best - record.candidates.data()));
  }
  json.end_object();
  return std::move(json).finish();
}

}  // namespace paceline::tuner

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cc/params.h"
#include "cc/registry.h"
#include "control/tuner/search_record.h"

namespace paceline::tuner {
namespace {

Candidate candidate(double objective, double queue, double excess = 0) {
  Candidate c;
  c.score.objective = objective;
  c.score.queue_bytes = queue;
  c.score.excess = excess;
  return c;
}

TEST_CASE("front: no candidate on it is beaten in both objective and queue", "[tuner]") {
  const std::vector<Candidate> all{candidate(-0.3, 5), candidate(-0.1, 9),   candidate(-0.2, 9),
                                   candidate(-0.2, 7), candidate(0, 1, 0.5), candidate(-0.5, 5),
                                   candidate(-0.6, 2)};
  CHECK(pareto_front(all) == std::vector<std::size_t>{1, 3, 0, 6});
}

TEST_CASE("finalists: the best within the limits, and the profile in any case", "[tuner]") {
  const std::vector<Candidate> all{candidate(-0.9, 5), candidate(-0.1, 9), candidate(-0.2, 9),
                                   candidate(0, 1, 0.5)};
  CHECK(finalists(all, 2) == std::vector<std::size_t>{1, 2, 0});
  CHECK(finalists(all, 3) == std::vector<std::size_t>{1, 2, 0});
  CHECK(finalists(all, 4) == std::vector<std::size_t>{1, 2, 0});
}

TEST_CASE("winner: judged on new seeds only, and within the limits there", "[tuner]") {
  std::vector<Candidate> all{candidate(-0.9, 5), candidate(-0.1, 9), candidate(-0.2, 9)};
  CHECK(winner(all) == nullptr);
  for (Candidate& c : all) {
    c.validated = true;
    c.validation = c.score;
  }
  CHECK(winner(all) == &all[1]);
  all[1].validation.excess = 0.1;
  CHECK(winner(all) == &all[2]);
  all[0].validation.objective = -0.15;
  CHECK(winner(all) == &all[0]);
}

TEST_CASE("record: reads back with every candidate, the front and the winner", "[tuner]") {
  const cc::AlgorithmInfo& info = *cc::find("dcqcn");
  cc::PortFacts facts;
  facts.link_rate = rate_from_gbps(100);
  const auto start = std::get<std::vector<double>>(cc::resolve_params(info, "paper", {}, facts));
  std::vector<std::string> errors;
  const std::vector<DimensionRequest> requests{{"increase_timer_us", {}, {}}};
  const SearchSpace space(info, start, requests, errors);
  SearchRecord record;
  record.algorithm = "dcqcn";
  record.profile = "paper";
  record.command = "paceline tune x.toml --param increase_timer_us";
  record.scenarios = {"incast"};
  record.search_seeds = {1, 2};
  record.validation_seeds = {3};
  record.limits = default_limits();
  record.candidates = {candidate(-0.5, 100), candidate(-0.1, 200), candidate(0, 1, 0.25)};
  for (Candidate& c : record.candidates) c.values = start;
  record.candidates[2].score.broken_limit = "incast: drops 3, at most 0";
  record.candidates[1].validated = true;
  record.candidates[1].validation = record.candidates[1].score;
  const auto json = nlohmann::json::parse(record_text(record, info, space));
  CHECK(json["schema"] == 1);
  CHECK(json["candidates"].size() == 3);
  CHECK(json["candidates"][0]["values"]["increase_timer_us"] == 55);
  CHECK(json["candidates"][2]["search"]["within_limits"] == false);
  CHECK(json["candidates"][2]["search"]["broken"] == "incast: drops 3, at most 0");
  CHECK(json["candidates"][1]["validation"]["objective"] == -0.1);
  CHECK(json["pareto_front"] == nlohmann::json({1, 0}));
  CHECK(json["winner"] == 1);
  CHECK(json["limits"]["drops"] == 0);
}

}  // namespace
}  // namespace paceline::tuner

// Points that a search tried, with their results: the record, and the choice made from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control/tuner/objective.h"
#include "control/tuner/search_space.h"

namespace paceline::tuner {

struct Candidate {
  std::vector<double> values;  // of every parameter of the algorithm, in ParamSpec order
  Score score;                 // on the seeds of the search
  bool validated = false;
  Score validation;  // on seeds that the search has never seen
};

// Indices of the candidates within the limits that no other one beats in both objective and
// largest queue, by falling objective.
std::vector<std::size_t> pareto_front(std::span<const Candidate> candidates);

// Indices of the best `count` candidates within the limits, best first. The first candidate (the
// profile that the search began with) is always included; it comes last if it is not good enough by
// itself.
std::vector<std::size_t> finalists(std::span<const Candidate> candidates, std::size_t count);

// The best validated point; nullptr if none is within the limits.
const Candidate* winner(std::span<const Candidate> candidates);

struct SearchRecord {
  std::string version;  // experiment::kResultsVersion
  std::string command;  // that repeats the search
  std::string algorithm;
  std::string profile;
  std::uint64_t seed = 1;
  std::vector<std::string> scenarios;
  std::vector<std::uint64_t> search_seeds;
  std::vector<std::uint64_t> validation_seeds;
  std::vector<Limit> limits;
  std::vector<Candidate> candidates;  // in the order of their evaluation; [0] is the profile
};

// JSON, schema 1. Holds no time and no machine: the same search gives the same text.
std::string record_text(const SearchRecord& record, const cc::AlgorithmInfo& algorithm,
                        const SearchSpace& space);

}  // namespace paceline::tuner

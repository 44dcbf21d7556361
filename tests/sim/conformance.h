// What every algorithm on the shelf promises, in numbers, and the worlds that hold it to that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cc/interface/algorithm.h"
#include "dataplane/driver/virtual/virtual_world.h"

namespace paceline::simtest {

struct Promise {
  std::string_view algorithm;
  std::string_view cc;      // further keys of the [cc] table that every run has; may be empty
  std::string_view params;  // further parameters, likewise
  double start_bytes = 0;   // what one flow may put into the queue before it hears anything
  double queue_bytes = 0;   // and what it lets stand there afterwards, all flows together
  std::string_view reason;  // for the two bounds
  double jain = 0;          // least fairness of alike flows
  double share = 0;         // least share of the port against as many flows of dcqcn
};

// The promise of an algorithm. An algorithm without one fails the test: write down what it
// promises.
const Promise& promise_of(const cc::AlgorithmInfo& algorithm);

// The [cc] table of a run, on a line of its own. params: more of them, "name = value, ...".
std::string cc_line(const cc::AlgorithmInfo& algorithm, const std::string& params = {});

// A run to its end. Every law of conservation held, nothing is left over and no message failed.
struct Outcome {
  std::uint64_t hash = 0;
  Picos ended{0};
  fabric::NetworkStats stats;
  std::uint64_t queue_max = 0;  // towards host 0
  // Bytes that each host had sent at each sample, hosts in a row.
  std::vector<std::vector<std::uint64_t>> sent;
};
Outcome settle(const std::string& toml, WorldOptions options = {});

// Jain's index of what hosts 1 .. n sent between two shares of the run.
double fairness(const Outcome& outcome, double from, double to);

}  // namespace paceline::simtest

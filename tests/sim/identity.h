// Small worlds whose runs are pinned, frame by frame: the net under a change of the transport or
// the fabric that must not change a result. tests/sim/identity.txt has their hashes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/sim/sim_support.h"

namespace paceline::simtest::identity {

// Called at every interval of a run, to change the world.
using Control = std::function<void(VirtualWorld&, Picos)>;

struct World {
  std::string name;  // group, slash, what it is about
  std::string toml;
  // What is sent, in place of the scenario's workload.
  std::function<MessagePlan(const config::Scenario&)> plan;
  // Makes the control callback of one run; empty: nothing changes under way.
  std::function<Control()> control;
  Picos control_interval = kNever;
  std::uint32_t threads = 1;      // more: the run of so many threads must be the same
  std::uint64_t random_seed = 0;  // not 0: a random world of that seed in place of `toml`
};

// The groups, one file or two each, and all of them.
std::vector<World> algorithm_worlds();
std::vector<World> fabric_worlds();
std::vector<World> transport_worlds();
std::vector<World> change_worlds();
std::vector<World> worlds();

// A [cc] line. `profile` may be empty, `params` is the inside of an inline table.
std::string cc_line(const std::string& algorithm, const std::string& profile = "",
                    const std::string& params = "");
// A [transport] line; `more` is what an inline table has besides.
std::string transport_line(const std::string& more);

}  // namespace paceline::simtest::identity

// The algorithms there are: the built-in ones, as static tables, and behind them the plug-ins that
// this process has loaded.
//
// Plug-ins are registered for the whole process, once and for good. That is what they are: a shared
// object is in the process or it is not, an id is one byte that means the same to every engine, and
// a plug-in may come while engines run on other threads. Whoever has the id finds the table
// complete, without a lock; nothing that was found before moves.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cc/algorithm.h"

namespace paceline::cc {

namespace plugin {
struct Plugin;
}

// In the order of AlgorithmId. Lives as long as the program; what is added later is not in it.
std::span<const AlgorithmInfo> algorithms();

// The algorithm of that name, or nullptr.
const AlgorithmInfo* find(std::string_view name);

// The algorithm of that id, or nullptr for a number that is none.
const AlgorithmInfo* find(AlgorithmId id);

// For error messages: the algorithm name nearest to what was asked for.
std::string_view nearest_algorithm(std::string_view name);

// What add_plugin answers: the algorithm, or why not.
struct Registered {
  const AlgorithmInfo* info = nullptr;
  std::string error;
};

// Takes a plug-in up and gives it its id. The same shared object again is the algorithm that it is
// already; a name that another algorithm has is an error, as is one plug-in too many. Any thread.
Registered add_plugin(std::unique_ptr<plugin::Plugin> plugin);

// The plug-in of that id, or nullptr.
const plugin::Plugin* plugin_of(AlgorithmId id);

}  // namespace paceline::cc

// The registered algorithms: the built-in ones, as static tables, and after them the plug-ins that
// this process has loaded.
//
// Plug-ins are registered for the whole process, once and for good: a shared object is loaded once
// per process, an id is one byte that means the same to every engine, and a plug-in may be
// loaded while engines run on other threads. A thread that has an id can read its complete table
// without a lock; tables never move.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cc/interface/algorithm.h"

namespace paceline::cc {

namespace plugin {
struct Plugin;
}

// In the order of AlgorithmId. Valid as long as the program runs; later plug-ins are not in it.
std::span<const AlgorithmInfo> algorithms();

// The algorithm of that name, or nullptr.
const AlgorithmInfo* find(std::string_view name);

// The algorithm with this id, or nullptr if there is none.
const AlgorithmInfo* find(AlgorithmId id);

// For error messages: the algorithm name nearest to what was asked for.
std::string_view nearest_algorithm(std::string_view name);

// Result of add_plugin: the algorithm, or an error.
struct Registered {
  const AlgorithmInfo* info = nullptr;
  std::string error;
};

// Registers a plug-in and gives it an id. If the same shared object is registered already, returns
// that algorithm. A name of another algorithm, or one plug-in too many, is an error. Any thread.
Registered add_plugin(std::unique_ptr<plugin::Plugin> plugin);

// The plug-in of that id, or nullptr.
const plugin::Plugin* plugin_of(AlgorithmId id);

}  // namespace paceline::cc

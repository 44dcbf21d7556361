// Tables of algorithms, without their code: the built-in ones, and plug-ins as described by the
// process that has loaded them. Algorithms of a catalogue can be named, checked, shown and
// journalled; another process runs them. Not thread-safe.
#pragma once

#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cc/interface/algorithm.h"
#include "cc/registry.h"

namespace paceline::config {

// File and checksum of a plug-in's code.
struct PluginOrigin {
  std::string path;
  std::string sha256;  // of the file, 64 hexadecimal digits
  friend bool operator==(const PluginOrigin&, const PluginOrigin&) = default;
};

nlohmann::json algorithm_json(const cc::AlgorithmInfo& info);
nlohmann::json origin_json(const PluginOrigin& origin);

class AlgorithmCatalogue {
 public:
  AlgorithmCatalogue();
  AlgorithmCatalogue(const AlgorithmCatalogue&) = delete;
  AlgorithmCatalogue& operator=(const AlgorithmCatalogue&) = delete;
  // The catalogue with only the built-in algorithms.
  static const AlgorithmCatalogue& built_in();

  static constexpr std::size_t kMostAlgorithms = 128;

  // Adds the table of a plug-in: algorithm_json with a member `plugin` (origin_json), and perhaps
  // `asked`, another path to its file. It replaces an earlier table of that name, whose data stays
  // readable. Returns an error, or an empty text.
  std::string add(const nlohmann::json& table);

  // In the order in which they came. None ever moves.
  std::span<const cc::AlgorithmInfo> algorithms() const { return infos_; }
  // There are any beside the built-in ones.
  bool plugins() const { return !told_.empty(); }
  // nullptr: there is none.
  const cc::AlgorithmInfo* find(std::string_view name) const;
  // The origin of a plug-in; nullptr for other algorithms.
  const PluginOrigin* origin(std::string_view name) const;
  // The plug-in whose file has this path, in the form of ReaderOptions::load_plugin.
  cc::Registered at(const std::string& path) const;
  // The table of an algorithm, as add() takes it; null: there is none.
  nlohmann::json table(std::string_view name) const;
  std::string_view nearest(std::string_view name) const;

 private:
  struct Told {  // what the info of a plug-in points at
    std::deque<std::string> texts;
    std::vector<cc::ParamSpec> params;
    std::deque<std::vector<cc::ProfileValue>> values;
    std::vector<cc::Profile> profiles;
    PluginOrigin origin;
    std::string asked;
    std::string name;
    bool current = true;
  };

  std::vector<cc::AlgorithmInfo> infos_;
  std::vector<std::unique_ptr<Told>> told_;  // never fewer
};

}  // namespace paceline::config

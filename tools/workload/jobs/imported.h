// What an importer returns: a value, or the errors that explain why there is none, and what the
// user should know about the value, each kind of remark once, with its count.
#pragma once

#include <string>
#include <vector>

namespace paceline::workload {

template <class T>
struct Imported {
  T value{};
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
  bool ok() const { return errors.empty(); }
};

}  // namespace paceline::workload

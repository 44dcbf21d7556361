#include "dataplane/config/scenario/checks/key_checks.h"

#include <fmt/format.h>

namespace paceline::config {

void KeyChecks::require(bool holds, Paths paths, const std::string& message) {
  if (holds || !given_.usable(paths)) return;
  context_.errors->add(given_.place(paths, start_), message);
}

void KeyChecks::refuse(Paths keys, std::string_view does_nothing_with) {
  for (const std::string_view key : keys) {
    const GivenKeys::Entry* const entry = given_.find(key);
    if (entry == nullptr || entry->inherited) continue;
    context_.errors->add(entry->where,
                         fmt::format("{} does nothing with {}", key, does_nothing_with));
  }
}

}  // namespace paceline::config

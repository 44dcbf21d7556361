// Shared by the parts of the plan reader, and internal to them.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "control/experiment/live/plan/plan.h"
#include "dataplane/config/scenario/table_reader.h"

namespace paceline::experiment::live {

inline void fail_at(config::ReadContext& context, const config::TomlNode& node,
                    std::string_view key, std::string_view why) {
  context.errors->add(node.where, fmt::format("{} = {}: {}", key, describe(node), why));
}

// [[arm]], [[cluster]] and nics. out.design has been read.
void read_places(const config::TomlNode& root, Plan& out, config::ReadContext& context);

}  // namespace paceline::experiment::live

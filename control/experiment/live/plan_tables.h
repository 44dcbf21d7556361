// Shared by the parts of the plan reader, and internal to them.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "control/experiment/live/plan.h"
#include "dataplane/config/scenario/table_reader.h"

namespace paceline::experiment::live {

inline void fail_at(config::ReadContext& context, const config::TomlNode& node,
                    std::string_view key, std::string_view why) {
  context.errors->add(node.where, fmt::format("{} = {}: {}", key, describe(node), why));
}

// take(table) for each table of an array of tables of the document, if it is there.
template <class Take>
void each_table(const config::TomlNode& root, std::string_view key, config::ReadContext& context,
                Take take) {
  const config::TomlMember* m = root.find(key);
  if (m == nullptr) return;
  if (m->value.type != config::TomlNode::Type::array) {
    return context.errors->add(m->where,
                               fmt::format("{0}: expected an array of tables, [[{0}]]", key));
  }
  for (const config::TomlNode& item : m->value.items) {
    if (item.is_table()) {
      take(item);
    } else {
      fail_at(context, item, key, fmt::format("expected a table, [[{}]]", key));
    }
  }
}

// [[arm]], [[cluster]] and nics. out.design has been read.
void read_places(const config::TomlNode& root, Plan& out, config::ReadContext& context);

}  // namespace paceline::experiment::live

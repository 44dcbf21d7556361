// How the parts of the testbed reader go through a table. For those files only.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/scenario/table_reader.h"
#include "dataplane/config/toml/toml_tree.h"

namespace paceline::config {

inline void fail_value(ReadContext& context, const TomlNode& node, std::string_view key,
                       std::string_view why) {
  context.errors->add(node.where, fmt::format("{} = {}: {}", key, describe(node), why));
}

// Every key of a table by its row. `others`: names that `take_other` reads.
template <class FieldOf, class TakeOther>
void read_testbed_table(const TomlNode& table, std::string_view name, std::span<const KeySpec> keys,
                        std::vector<std::string_view> others, ReadContext& context,
                        FieldOf field_of, TakeOther take_other) {
  std::vector<std::string_view> valid;
  for (const KeySpec& key : keys) valid.push_back(key.name());
  valid.insert(valid.end(), others.begin(), others.end());
  for (const TomlMember& m : table.members) {
    const auto key =
        std::find_if(keys.begin(), keys.end(), [&](const KeySpec& k) { return k.name() == m.key; });
    if (key != keys.end()) {
      read_value(*key, field_of(m.key), m.value, context);
    } else if (std::find(others.begin(), others.end(), m.key) != others.end()) {
      take_other(m);
    } else {
      report_unknown_key(m, name, valid, context);
    }
  }
}

// take(item) for each text of an array of texts.
template <class Take>
void read_texts(const TomlMember& m, std::string_view table, ReadContext& context, Take take) {
  const std::string path = fmt::format("{}.{}", table, m.key);
  if (m.value.type != TomlNode::Type::array) {
    return fail_value(context, m.value, path, "expected an array of texts");
  }
  for (const TomlNode& item : m.value.items) {
    if (item.type != TomlNode::Type::text || item.text.empty()) {
      fail_value(context, item, path, "expected texts that are not empty");
    } else {
      take(item);
    }
  }
}
}  // namespace paceline::config

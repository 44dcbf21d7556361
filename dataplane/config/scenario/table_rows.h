// Reads a table of a TOML document by rows: each has a key's name, type and range, and the field
// that it fills.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "dataplane/config/scenario/table_reader.h"
#include "dataplane/config/toml/toml_tree.h"

namespace paceline::config {

struct Row {
  KeySpec key;
  Field field;
};

// Reads every key of [name] by its row; an empty `name` is the top of the document. `take_other`
// reads the keys named in `others`. False, with errors, if a value does not fit its row or a key is
// unknown.
template <class TakeOther>
bool read_rows(const TomlNode& table, std::string_view name, std::span<const Row> rows,
               const std::vector<std::string_view>& others, ReadContext& context,
               TakeOther take_other) {
  bool good = true;
  std::vector<std::string_view> valid;
  for (const Row& row : rows) valid.push_back(row.key.name());
  valid.insert(valid.end(), others.begin(), others.end());
  for (const TomlMember& m : table.members) {
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.key.name() == m.key; });
    if (row != rows.end()) {
      good = read_value(row->key, row->field, m.value, context) && good;
    } else if (std::find(others.begin(), others.end(), m.key) != others.end()) {
      take_other(m);
    } else {
      report_unknown_key(m, name, valid, context);
      good = false;
    }
  }
  return good;
}

}  // namespace paceline::config

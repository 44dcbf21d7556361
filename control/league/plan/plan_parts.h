// Parts of the reader of league files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/league/plan/plan.h"
#include "dataplane/config/scenario/document.h"

namespace paceline::league {

// Reports an error for each key of the table that is not in `valid`.
void check_keys(const config::TomlNode& table, std::string_view what,
                std::span<const std::string_view> valid, config::ReadContext& context);

// Reads an [[entry]] whose name was read already. False, with an error, if it names no algorithm.
bool read_entry(config::TomlNode& node, Entry& entry, config::ReadContext& context);

// Makes plan.cells from its scenarios and entries.
void make_cells(Plan& plan, const config::ReaderOptions& options, config::Diagnostics& errors);

}  // namespace paceline::league

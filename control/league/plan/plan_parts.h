// Parts of the reader of league files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/league/plan/plan.h"
#include "dataplane/config/scenario/document.h"

namespace paceline::league {

// A table may have these keys; an error for any other.
void check_keys(const config::TomlNode& table, std::string_view what,
                std::span<const std::string_view> valid, config::ReadContext& context);

// An [[entry]] whose name is read already. False, and an error, when it names no algorithm.
bool read_entry(config::TomlNode& node, Entry& entry, config::ReadContext& context);

// plan.cells from its scenarios and entries.
void make_cells(Plan& plan, const config::ReaderOptions& options, config::Diagnostics& errors);

}  // namespace paceline::league

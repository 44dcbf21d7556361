// Parts of the reader of league files.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/league/plan.h"
#include "dataplane/config/scenario/document.h"

namespace paceline::league {

// A table that is laid over a scenario may have these keys; an error for any other.
void check_laid(const config::TomlNode& table, std::string_view what,
                std::span<const std::string_view> valid, config::ReadContext& context);

// An [[entry]] whose name is read already. `laid` becomes what it lays over every scenario. False,
// and an error, when it names no algorithm.
bool read_entry(config::TomlNode& node, Entry& entry, config::TomlNode& laid,
                config::ReadContext& context);

// plan.cells from its scenarios and entries and from what each lays over the scenario's file.
void make_cells(Plan& plan, std::span<const config::TomlNode> by_scenario,
                std::span<const config::TomlNode> by_entry, const config::ReaderOptions& options,
                config::Diagnostics& errors);

}  // namespace paceline::league

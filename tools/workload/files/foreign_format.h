// Recognises files of other simulators that are given as a table: "2 columns: expected 1" would not
// tell the user that the whole file is of another kind.
#pragma once

#include <string_view>

#include "tools/workload/files/text_table.h"

namespace paceline::workload {

bool all_numbers(const TextLine& line);

// A name such as "a connection matrix of htsim (.cm)", from the first two lines; "" where it is
// nothing known.
std::string_view known_format(std::string_view text);

// Adds "this seems to be ...; expected ..." at `place` and returns true, where the format is known.
bool report_known_format(std::string_view text, const config::Where& place,
                         std::string_view expected, TableErrors& errors);

}  // namespace paceline::workload

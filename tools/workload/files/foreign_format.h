// Recognises files of other simulators that are given as a table: "2 columns: expected 1" would not
// tell the user that the whole file is of another kind.
#pragma once

#include <array>
#include <string_view>

#include "tools/workload/files/text_table.h"

namespace paceline::workload {

// The first words of a text workload of SimAI and ASTRA-sim, in the order of SimaiPolicy.
inline constexpr std::array<std::string_view, 11> kSimaiPolicies = {
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
    "HYBRID_TRANSFORMER",
    "MICRO",
    "DATA",
    "MODEL",
    "HYBRID_DATA_MODEL",
    "HYBRID_MODEL_DATA",
    "HYBRID_DLRM",
    "HYBRID_DLRM_ENHANCED",
    "DISTRIBUTED_INFERENCE",
    "HYBRID_CUSTOMIZED",
};

bool all_numbers(const TextLine& line);

// A name such as "a connection matrix of htsim (.cm)", from the first two lines; "" where it is
// nothing known.
std::string_view known_format(std::string_view text);

// Adds "this seems to be ...; expected ..." at `place` and returns true, where the format is known.
bool report_known_format(std::string_view text, const config::Where& place,
                         std::string_view expected, TableErrors& errors);

}  // namespace paceline::workload

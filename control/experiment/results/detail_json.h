// The `detail` member of a results file (docs/telemetry.md lists its keys).
#pragma once

#include "control/experiment/analysis/effects.h"
#include "control/experiment/detail.h"
#include "control/experiment/text/json_reader.h"
#include "control/experiment/text/json_writer.h"

namespace paceline::experiment {

// Writes the member into the object that is open.
void write_detail(JsonWriter& json, const Detail& detail);

// An empty detail when the member is absent, as in files written without it. Errors go to `in`.
Detail read_detail(JsonReader& in, const JsonReader::Json& root, const AnalysisPlan& plan);

}  // namespace paceline::experiment

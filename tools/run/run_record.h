// Results of a run as text and back, bit for bit: shortest digits that read back as the same
// double, and texts for values that JSON numbers lack. This text travels between threads, processes
// and machines.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "control/experiment/detail.h"
#include "control/experiment/run_result.h"

namespace paceline::tools {

// A double as JSON: null for NaN, "inf" and "-inf" in quotes.
std::string exact_number_text(double value);
// Throws nlohmann's exceptions, as the others here, when it is none of these.
double exact_number_of(const nlohmann::json& value);

// A text as JSON, in ASCII.
std::string json_text_of(const std::string& text);

// JSON without line breaks. Names of scenario and arm, the repetition and the seed are not in it:
// they follow from the task.
std::string result_text(const experiment::RunResult& result);
experiment::RunResult result_of(const nlohmann::json& json);

// A distribution that is read back gives the figures of the original (its sum is not kept).
std::string distribution_text(const experiment::Distribution& distribution);
experiment::Distribution distribution_from(const nlohmann::json& json);

std::string series_text(const experiment::TimeSeries& series);
experiment::TimeSeries series_of(const nlohmann::json& json);

}  // namespace paceline::tools

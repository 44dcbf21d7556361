// The findings of `paceline mesh`, as text and as JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace paceline::tools {

// {nics: [names], seconds, interval_us, class, paths, pairs: [{from, to, and the figures of a peer
// as control_protocol.h has them for `probes`}]}. `most` pairs at most are listed, the slowest.
std::string mesh_text(const nlohmann::ordered_json& mesh, std::size_t most);

}  // namespace paceline::tools

// The queues of an emulated fabric, as the status of the service has them.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

namespace paceline::tools {

struct FabricLook {
  bool emulated = false;  // else there are no switches to ask
  // The deepest queue of any switch now, and the deepest since the service began.
  std::uint64_t queued_bytes = 0;
  std::string queued_at;  // "switch0 > h1"; empty: all are empty
  std::uint64_t most_bytes = 0;
  std::string most_at;
};

FabricLook fabric_look(const nlohmann::json& status);

}  // namespace paceline::tools

// Tables of a service's status.
#pragma once

#include <span>
#include <string>

#include "dataplane/attach/protocol.h"

namespace paceline::tools {

std::string nics_text(std::span<const attach::NicInfo> nics);

// Texts of programs in them are without control characters.
struct StatusText {
  std::string text;
  std::string error;  // the text is not a status
};
StatusText status_text(const std::string& json);
// The status itself, in ASCII.
StatusText status_json(const std::string& json);

}  // namespace paceline::tools

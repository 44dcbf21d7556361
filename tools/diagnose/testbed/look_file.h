// Looks that are kept, to be judged later: lines of JSON. The first says what was watched, with the
// text of its description; each other one is a look at all its hosts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/units.h"
#include "tools/diagnose/testbed/fabric_places.h"

namespace paceline::tools {

struct LookFileHead {
  std::string of;           // "testbed" or "fleet"
  std::string source;       // the file that described it
  std::string description;  // its text
  std::vector<std::string> overrides;
};

struct KeptLook {
  Picos at{0};  // since the first one
  std::vector<SightedHost> hosts;
};

// Without line ends.
std::string head_line(const LookFileHead& head);
std::string look_line(Picos at, const std::vector<SightedHost>& hosts);
// Returns why the line is not such a head, or an empty text.
std::string read_head_line(std::string_view line, LookFileHead& out);
std::string read_look_line(std::string_view line, std::size_t hosts, KeptLook& out);

}  // namespace paceline::tools

// Files that hold secrets: read only where nobody else may read them.
#pragma once

#include <string>

namespace paceline::daemon {

// The whole of a regular file of mode 0600 or stricter that belongs to this user or to root. Not
// empty: why not, with the path and what is allowed.
std::string read_private_file(const std::string& path, std::string& out);

}  // namespace paceline::daemon

// Files that hold secrets: they are read only if nobody else may read them.
#pragma once

#include <string>

namespace paceline::daemon {

// Reads a regular file of mode 0600 or stricter that belongs to this user or to root. Returns an
// error, with the path and what is allowed, or an empty text.
std::string read_private_file(const std::string& path, std::string& out);

}  // namespace paceline::daemon

// A file of our own to write into, in a folder that others may write, too.
#pragma once

#include <string>

namespace paceline::config {

// Creates an empty file in place of whatever has that name. If another user has put a link or a
// pipe there, it is not followed. 0 or an errno.
int make_fresh_file(const std::string& path, unsigned mode = 0666);

}  // namespace paceline::config

// Gives up the rights that the daemon needed to open its files.
#pragma once

#include <string>

namespace paceline::daemon {

// Changes to the user with its groups, drops all capabilities, and prevents regaining them. If the
// process already runs as this user, only drops capabilities. Returns an error, or an empty text;
// after an error the process must end.
std::string become(const std::string& user);

// Gives a folder that root owns to the user to which the daemon changes; empty: no change of user.
// A folder of that user stays as it is; a folder of any other user is refused. Returns an error, or
// an empty text.
std::string give_folder(const std::string& path, const std::string& user);

}  // namespace paceline::daemon

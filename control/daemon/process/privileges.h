// Giving up what the daemon had to be to open its files.
#pragma once

#include <string>

namespace paceline::daemon {

// Becomes the user, with its groups, no capability, and no way to gain any. Does nothing but the
// last two where this user runs already. What is wrong, empty: nothing; after an error the process
// must end.
std::string become(const std::string& user);

// Gives a folder of root's to the user that the daemon becomes; empty: nobody else. One that is
// that user's stays so, any other is refused. What is wrong, empty: nothing.
std::string give_folder(const std::string& path, const std::string& user);

}  // namespace paceline::daemon

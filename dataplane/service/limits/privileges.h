// What the service may do beyond what any program may, once it has opened what needs more: as
// little as what it serves needs, and known to whoever asks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/service/memory/credentials.h"

namespace paceline::service {

struct KeptCapability {
  std::string name;  // cap_net_raw
  bool in_force = false;
  std::string why;
};

struct Privileges {
  uid_t user = 0;
  // May attach and control beside root: the user of the service, but 0 where the service chose it.
  uid_t owner = 0;
  // Who started it: sockets, and the folders of files that an operator names, are theirs.
  Credentials starter;
  std::vector<KeptCapability> kept;
  // "user 0 with cap_setuid (why), ...".
  std::string text() const;
};

struct PrivilegeNeeds {
  // To become. Empty: of a service that root starts without ports `paceline`, or where there is no
  // such user an id that is nobody's; else as it is.
  std::string user;
  bool ports = false;  // devices of this machine are open
};

// Of the calling thread and those that it starts; of all threads where the user changes. Gives up
// the way back, too. What is wrong, empty: nothing; after an error the process must end.
std::string drop_privileges(const PrivilegeNeeds& needs, Privileges& out);

}  // namespace paceline::service

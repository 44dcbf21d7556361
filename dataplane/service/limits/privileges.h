// What the service may do beyond what any program may, once it has opened what needs more: as
// little as what it serves needs, and known to whoever asks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace paceline::service {

struct KeptCapability {
  std::string name;  // cap_net_raw
  bool in_force = false;
  std::string why;
};

struct Privileges {
  uid_t user = 0;
  std::vector<KeptCapability> kept;
  // "user 0 with cap_setuid (why), ...".
  std::string text() const;
};

struct PrivilegeNeeds {
  std::string user;    // to become; empty: as it is
  bool ports = false;  // devices of this machine are open
};

// Of the calling thread and those that it starts; of all threads where the user changes. Gives up
// the way back, too. What is wrong, empty: nothing; after an error the process must end.
std::string drop_privileges(const PrivilegeNeeds& needs, Privileges& out);

}  // namespace paceline::service

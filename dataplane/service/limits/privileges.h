// Privileges that the service keeps after it has opened devices and sockets: as few as its work
// needs. The status lists them.
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
  // May attach and control, besides root: the user of the service, but 0 if the service chose it.
  uid_t owner = 0;
  // The user that started the service: sockets and folders that an operator names belong to it.
  Credentials starter;
  std::vector<KeptCapability> kept;
  // "user 0 with cap_setuid (why), ...".
  std::string text() const;
};

struct PrivilegeNeeds {
  // The user to change to. Empty: a service that root starts without ports changes to `paceline`
  // or, if there is no such user, to an unused id; any other service keeps its user.
  std::string user;
  bool ports = false;  // devices of this machine are open
};

// Drops privileges of the calling thread and of threads that it starts; of all threads if the user
// changes. They cannot be regained. Returns an error, after which the process must end, or "".
std::string drop_privileges(const PrivilegeNeeds& needs, Privileges& out);

}  // namespace paceline::service

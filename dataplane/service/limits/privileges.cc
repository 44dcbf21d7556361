#include "dataplane/service/limits/privileges.h"

#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "dataplane/service/memory/credentials.h"

namespace paceline::service {

namespace {

struct Need {
  unsigned number;
  std::string_view name;
  bool ports;     // only where there are any
  bool in_force;  // else to be taken on by a copy
  std::string_view why;
};

constexpr auto kNeeds = std::to_array<Need>({
    {CAP_SETUID, "cap_setuid", false, true, "copies run as the program's user"},
    {CAP_SETGID, "cap_setgid", false, true, "and with its groups"},
    {CAP_SYS_PTRACE, "cap_sys_ptrace", false, false,
     "copies for root's programs, which have it themselves"},
    {CAP_NET_RAW, "cap_net_raw", true, true, "ports of this machine"},
    {CAP_NET_ADMIN, "cap_net_admin", true, true, "ports of this machine"},
    {CAP_IPC_LOCK, "cap_ipc_lock", true, true, "memory that devices reach"},
});

constexpr std::uint64_t bit(unsigned capability) { return std::uint64_t{1} << capability; }

std::string failed(std::string_view what) {
  return fmt::format("{}: {}", what, std::strerror(errno));
}

// With its groups, and the capabilities that are permitted.
std::string become(const std::string& name) {
  std::vector<char> room(16'384);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(name.c_str(), &entry, room.data(), room.size(), &found) != 0 ||
      found == nullptr) {
    return fmt::format("service.user = \"{}\": there is no such user", name);
  }
  if (::geteuid() == entry.pw_uid) return {};
  if (::geteuid() != 0) {
    return fmt::format("service.user = \"{}\": only root can become another user; this is user {}",
                       name, ::geteuid());
  }
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return failed("PR_SET_KEEPCAPS");
  if (::initgroups(entry.pw_name, entry.pw_gid) != 0) return failed("initgroups");
  if (::setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid) != 0) return failed("setresgid");
  if (::setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid) != 0) return failed("setresuid");
  if (::prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) != 0) return failed("PR_SET_KEEPCAPS");
  return {};
}

}  // namespace

std::string Privileges::text() const {
  std::string out = fmt::format("user {}", user);
  std::string_view between = " with ";
  for (const KeptCapability& one : kept) {
    out += fmt::format("{}{}{} ({})", between, one.name, one.in_force ? "" : ", not in force",
                       one.why);
    between = ", ";
  }
  return kept.empty() ? out + " without capabilities" : out;
}

std::string drop_privileges(const PrivilegeNeeds& needs, Privileges& out) {
  if (!needs.user.empty()) {
    if (std::string wrong = become(needs.user); !wrong.empty()) return wrong;
  }
  out.user = ::geteuid();
  const std::uint64_t had = capability_sets().permitted;
  CapabilitySets keep;
  for (const Need& need : kNeeds) {
    if ((had & bit(need.number)) == 0 || (need.ports && !needs.ports)) continue;
    keep.permitted |= bit(need.number);
    if (need.in_force) keep.effective |= bit(need.number);
    out.kept.push_back({std::string(need.name), need.in_force, std::string(need.why)});
  }
  // In a container root has not the right to trace, but others: who copies for its programs needs
  // all that they have.
  if (out.user == 0 && (had & bit(CAP_SYS_PTRACE)) == 0) {
    for (unsigned number = 0; number <= CAP_LAST_CAP; ++number) {
      if ((had & ~keep.permitted & bit(number)) == 0) continue;
      keep.permitted |= bit(number);
      out.kept.push_back({fmt::format("capability {}", number), false,
                          "copies for root's programs, which have it themselves"});
    }
  }
  if (const int error = set_capabilities(keep); error != 0) {
    return fmt::format("capabilities: {}", std::strerror(error));
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("PR_SET_NO_NEW_PRIVS");
  // Who copies for another user is that user's process, and has this one's memory.
  if ((keep.effective & bit(CAP_SETUID)) != 0 && ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
    return failed("PR_SET_DUMPABLE");
  }
  return {};
}

}  // namespace paceline::service

#include "dataplane/service/limits/privileges.h"

#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "dataplane/service/memory/credentials.h"

namespace paceline::service {

namespace {

struct Need {
  unsigned number;
  std::string_view name;
  bool ports;     // only where there are any
  bool in_force;  // else a copying thread takes it on
  std::string_view why;
};

constexpr std::string_view kForPorts = "ports of this machine";

constexpr auto kNeeds = std::to_array<Need>({
    {CAP_SETUID, "cap_setuid", false, false, "copies run as the program's user"},
    {CAP_SETGID, "cap_setgid", false, false, "and with its groups"},
    {CAP_SYS_PTRACE, "cap_sys_ptrace", false, false,
     "copies for root's programs, which have it themselves"},
    {CAP_NET_RAW, "cap_net_raw", true, true, kForPorts},
    {CAP_NET_ADMIN, "cap_net_admin", true, true, kForPorts},
    {CAP_IPC_LOCK, "cap_ipc_lock", true, true, "memory that devices reach"},
});

constexpr std::uint64_t bit(unsigned capability) { return std::uint64_t{1} << capability; }

std::string failed(std::string_view what) {
  return fmt::format("{}: {}", what, std::strerror(errno));
}

struct User {
  uid_t user = 0;
  std::vector<gid_t> groups;  // the first is its own
};

bool find_user(const std::string& name, User& out) {
  std::vector<char> room(16'384);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(name.c_str(), &entry, room.data(), room.size(), &found) != 0 ||
      found == nullptr) {
    return false;
  }
  out.user = entry.pw_uid;
  int count = 1024;
  out.groups.resize(static_cast<std::size_t>(count));
  if (::getgrouplist(entry.pw_name, entry.pw_gid, out.groups.data(), &count) < 0) return false;
  out.groups.resize(static_cast<std::size_t>(count));
  return true;
}

std::string name_of(uid_t user) {
  std::vector<char> room(16'384);
  passwd entry{};
  passwd* found = nullptr;
  const int error = ::getpwuid_r(user, &entry, room.data(), room.size(), &found);
  return error == 0 && found != nullptr ? entry.pw_name : std::string();
}

// Whether the user namespace of this process knows it.
bool mapped(const char* map, std::uint64_t id) {
  std::ifstream file(map);
  for (std::uint64_t first = 0, outside = 0, count = 0; file >> first >> outside >> count;) {
    if (id >= first && id - first < count) return true;
  }
  return false;
}

bool may_become(const User& who) {
  constexpr std::uint64_t kChanges = bit(CAP_SETUID) | bit(CAP_SETGID);
  std::string groups;
  std::ifstream("/proc/self/setgroups") >> groups;
  return (capability_sets().effective & kChanges) == kChanges && groups == "allow" &&
         mapped("/proc/self/uid_map", who.user) && mapped("/proc/self/gid_map", who.groups.front());
}

// Used instead of `nobody`, because other processes of `nobody` could kill the service. Systems do
// not give this id to users: it lies between the ranges of systemd-homed and of systemd's dynamic
// users.
constexpr uid_t kUnassignedUid = 60'999;

// False: there is no user to which this process may change.
bool choose_user(User& out) {
  if (!find_user("paceline", out)) {
    out = {kUnassignedUid, {kUnassignedUid}};
    if (!name_of(kUnassignedUid).empty() && !find_user("nobody", out)) return false;
  }
  return may_become(out);
}

// Changes to that user with its groups, and with the permitted capabilities.
std::string become(const User& who) {
  int with_parent = 0;  // the signal of the parent's end, which a change of user takes back
  ::prctl(PR_GET_PDEATHSIG, &with_parent, 0, 0, 0);
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return failed("PR_SET_KEEPCAPS");
  const gid_t group = who.groups.front();
  if (::setgroups(who.groups.size(), who.groups.data()) != 0) return failed("setgroups");
  if (::setresgid(group, group, group) != 0) return failed("setresgid");
  if (::setresuid(who.user, who.user, who.user) != 0) return failed("setresuid");
  if (::prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) != 0) return failed("PR_SET_KEEPCAPS");
  if (::prctl(PR_SET_PDEATHSIG, with_parent, 0, 0, 0) != 0) return failed("PR_SET_PDEATHSIG");
  return {};
}

std::string become_named(const std::string& name) {
  User who;
  if (!find_user(name, who)) {
    return fmt::format("service.user = \"{}\": there is no such user", name);
  }
  if (::geteuid() == who.user) return {};
  if (::geteuid() != 0) {
    return fmt::format("service.user = \"{}\": only root can become another user; this is user {}",
                       name, ::geteuid());
  }
  return become(who);
}

// Needs CAP_SETPCAP, which a change of user takes out of force; without it PR_SET_NO_NEW_PRIVS has
// to do. Being root brings no capability back, either.
void bound_capabilities(std::uint64_t most) {
  const std::uint64_t permitted = capability_sets().permitted;
  set_capabilities({permitted, permitted});
  for (unsigned number = 0; number <= CAP_LAST_CAP; ++number) {
    if ((most & bit(number)) == 0) ::prctl(PR_CAPBSET_DROP, number, 0, 0, 0);
  }
  constexpr unsigned long kNoWayBack = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
                                       SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                                       SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
  ::prctl(PR_SET_SECUREBITS, kNoWayBack, 0, 0, 0);
}

}  // namespace

std::string Privileges::text() const {
  const std::string name = name_of(user);
  std::string out = fmt::format("user {}{}", user, name.empty() ? "" : " (" + name + ")");
  std::string_view between = " with ";
  for (const KeptCapability& one : kept) {
    out += fmt::format("{}{}{} ({})", between, one.name, one.in_force ? "" : ", not in force",
                       one.why);
    between = ", ";
  }
  if (kept.empty()) out += " without capabilities";
  const bool ports = std::any_of(kept.begin(), kept.end(),
                                 [](const KeptCapability& one) { return one.why == kForPorts; });
  if (user == 0 && ports) {
    out += "; still root: ports open devices and sockets again while they run";
  }
  return out;
}

std::string drop_privileges(const PrivilegeNeeds& needs, Privileges& out) {
  out.starter = own_credentials();
  std::string wrong;
  User chosen;
  const bool choose = needs.user.empty() && out.starter.user == 0 && !needs.ports;
  if (choose && choose_user(chosen)) {
    wrong = become(chosen);
  } else if (!needs.user.empty()) {
    wrong = become_named(needs.user);
  }
  if (!wrong.empty()) return wrong;
  out.user = ::geteuid();
  out.owner = choose ? 0 : out.user;
  const std::uint64_t had = capability_sets().permitted;
  CapabilitySets keep;
  for (const Need& need : kNeeds) {
    if ((had & bit(need.number)) == 0 || (need.ports && !needs.ports)) continue;
    keep.permitted |= bit(need.number);
    if (need.in_force) keep.effective |= bit(need.number);
    out.kept.push_back({std::string(need.name), need.in_force, std::string(need.why)});
  }
  // In most containers root may not trace: copying for root's programs needs all capabilities that
  // they have. An operator who names another user does without that.
  if ((out.user == 0 || choose) && (had & bit(CAP_SYS_PTRACE)) == 0) {
    for (unsigned number = 0; number <= CAP_LAST_CAP; ++number) {
      if ((had & ~keep.permitted & bit(number)) == 0) continue;
      keep.permitted |= bit(number);
      out.kept.push_back({fmt::format("capability {}", number), false,
                          "copies for root's programs, which have it themselves"});
    }
  }
  bound_capabilities(keep.permitted);
  if (const int error = set_capabilities(keep); error != 0) {
    return fmt::format("capabilities: {}", std::strerror(error));
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("PR_SET_NO_NEW_PRIVS");
  // A process that copies for a tenant belongs to the tenant's user, and shares the service's
  // memory.
  if ((keep.permitted & bit(CAP_SETUID)) != 0 && ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
    return failed("PR_SET_DUMPABLE");
  }
  return {};
}

}  // namespace paceline::service

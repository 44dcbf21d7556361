#include "dataplane/service/limits/privileges.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <utility>

#include "dataplane/service/memory/credentials.h"

namespace paceline::test {
namespace {

// What `work` says, in a process of its own: there is no way back.
std::string in_child(const std::function<std::string()>& work) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string said = work();
    ::_exit(::write(ends[1], said.data(), said.size()) < 0 ? 1 : 0);
  }
  ::close(ends[1]);
  std::string said;
  std::array<char, 512> room{};
  for (ssize_t n = 0; (n = ::read(ends[0], room.data(), room.size())) > 0;) {
    said.append(room.data(), static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return said;
}

std::string drop(const std::string& user, bool ports) {
  service::Privileges kept;
  const std::string wrong = service::drop_privileges({user, ports}, kept);
  return wrong.empty() ? kept.text() : wrong;
}

// The names of what it keeps.
std::string drop_without_trace(const std::string& user) {
  const std::uint64_t most =
      service::capability_sets().permitted & ~(std::uint64_t{1} << CAP_SYS_PTRACE);
  if (service::set_capabilities({most, most}) != 0) return "?";
  service::Privileges kept;
  std::string said = service::drop_privileges({user, false}, kept);
  for (const service::KeptCapability& one : kept.kept) said += one.name + " ";
  return said;
}

constexpr int kNoWayBack = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                           SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

}  // namespace

TEST_CASE("a service keeps what it needs and has, and says it", "[service][may_skip]") {
  CHECK(in_child([] { return drop("no-such-user", false); }) ==
        "service.user = \"no-such-user\": there is no such user");
  const std::string plain = in_child([] {
    const std::string said = drop("", false);
    const service::CapabilitySets sets = service::capability_sets();
    const bool good =
        (sets.effective & ~sets.permitted) == 0 && ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
    return good ? said : "not dropped";
  });
  CHECK(plain.starts_with("user "));
  CHECK(plain.find("cap_net_raw") == std::string::npos);
  if (::geteuid() != 0) {
    WARN("skipped: root only");
    return;
  }
  // The service chooses: who that is controls nothing. Root is asked for, or has devices.
  CHECK(in_child([] {
          service::Privileges kept;
          const std::string wrong = service::drop_privileges({}, kept);
          if (!wrong.empty()) return wrong;
          return std::string(kept.user == 0 || kept.user != ::getuid() ? "root" : "another") +
                 (kept.owner == 0 && kept.starter.user == 0 ? "" : ", which controls it") +
                 (::prctl(PR_GET_SECUREBITS) == kNoWayBack ? "" : ", who may be root again");
        }) == "another");
  // In most containers root may not trace: only who names another user does without its programs.
  CHECK(in_child([] { return drop_without_trace("nobody"); }) == "cap_setuid cap_setgid ");
  for (const char* user : {"", "root"}) {
    CHECK(in_child([user] { return drop_without_trace(user); }).find("capability 0 ") !=
          std::string::npos);
  }
  for (const auto& [name, ports] : {std::pair("root", false), std::pair("", true)}) {
    const std::string said = in_child([who = name, with = ports] { return drop(who, with); });
    CHECK(said.starts_with("user 0 (root) with"));
    CHECK((said.find("still root: ports") != std::string::npos) == ports);
  }
  const std::string user = in_child([] {
    if (::setgid(54'321) != 0 || ::setuid(54'321) != 0) return std::string("?");
    return drop("", true) + "; " + drop("root", true);
  });
  CHECK(user ==
        "user 54321 without capabilities; service.user = \"root\": only root can become another "
        "user; this is user 54321");
}

}  // namespace paceline::test

// A hostile program against a service that serves another program as well.
//
//   hostile --service PATH --testbed FILE [--seed N] [--mutations N]
//
// Starts the service, a hostile process (another user where it may, so that quotas are its own),
// and a good tenant here, every byte of which is checked throughout. At the end the service must
// answer, hold no more than before, and exit with status 0; built with sanitizers it does that only
// if they have found nothing. Exit status 0: all of it holds.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "dataplane/config/command_line.h"
#include "dataplane/service/limits/service_limits.h"
#include "tests/verbs/hostile/campaigns.h"
#include "tests/verbs/hostile/service_process.h"

using namespace paceline;
using namespace paceline::test;

namespace {

constexpr uid_t kNobody = 65534;
constexpr std::uint64_t kWave = 2000;  // mutations of sessions between two other campaigns

struct Options {
  std::string service;
  std::string testbed;
  std::uint64_t seed = 1;
  std::uint64_t mutations = 20'000;
};

// In a process of its own: what becomes of it is its own affair.
int be_hostile(const Options& options, const std::string& socket, int from_parent) {
  HostileWorld world{socket, {}, OddValues(options.seed), {}, {}, 0, {}};
  if (::read(from_parent, &world.neighbour, sizeof(KnownToAll)) != sizeof(KnownToAll)) return 3;
  if (::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) return 3;
  ::prctl(PR_SET_DUMPABLE, 1);  // as a program that did not change its user
  for (std::size_t i = 0; i < 2; ++i) {
    world.odd.learn(world.neighbour.qp_numbers[i]);
    world.odd.learn(world.neighbour.keys[i]);
    world.odd.learn(world.neighbour.addresses[i]);
  }
  collect_descriptors(world);
  for (std::uint64_t wave = 0; world.mutations < options.mutations && world.wrong.empty(); ++wave) {
    work_sessions(world, std::min(kWave, options.mutations - world.mutations));
    leave_at_every_step(world, wave % 2 == 1);
    come_in_crowds(world);
    never_read(world);
    pass_wrong_descriptors(world);
  }
  if (!world.arena.untouched()) world.wrong = "memory that was never registered has changed";
  fmt::print("{} mutations{}{}\n", world.mutations, world.wrong.empty() ? "" : ": ", world.wrong);
  std::fflush(stdout);
  return world.wrong.empty() ? 0 : 1;
}

// Everything of every tenant is given back; the session that asks is not opened, but counted.
std::string left_over(const nlohmann::json& status) {
  if (!status.is_object() || !status.contains("tenants")) return "no status";
  if (!status["sessions"].empty()) return "sessions: " + status["sessions"].dump();
  for (const auto& tenant : status["tenants"]) {
    for (const auto& [name, value] : tenant.items()) {
      if (!value.is_object() || !value.contains("used")) continue;
      std::uint64_t most = 0;
      if (tenant["user"] == ::geteuid()) {
        most = name == "sessions" ? 1 : name == "descriptors" ? service::kSessionDescriptors : 0;
      }
      if (value["used"].get<std::uint64_t>() > most) {
        return fmt::format("user {}: {} {}", tenant["user"].dump(), name, value.dump());
      }
    }
  }
  return {};
}

// When nothing is on its way any more: connections that are over are closed aside, a moment later.
Holdings settled(const ServiceProcess& service) {
  Holdings now = service.holdings();
  for (int same = 0, looks = 0; same < 5 && looks < 200; ++looks) {
    ::usleep(10'000);
    const Holdings next = service.holdings();
    same = next == now ? same + 1 : 0;
    now = next;
  }
  return now;
}

class Verdict {
 public:
  void expect(bool good, const std::string& text) {
    fmt::print("{} {}\n", good ? "ok    " : "FAILED", text);
    good_ = good_ && good;
  }
  bool good() const { return good_; }

 private:
  bool good_ = true;
};

int run(const Options& options, const std::string& folder) {
  ::chmod(folder.c_str(), 0755);  // the hostile user must come to the socket
  ServiceProcess service(options.service, options.testbed, folder);
  if (!service.await()) {
    fmt::print("the service does not start:\n{}\n", service.log());
    return 1;
  }
  service.status();  // what it does for the first time it may keep
  const Holdings before = settled(service);

  int to_hostile[2];
  if (::pipe2(to_hostile, O_CLOEXEC) != 0) return 1;
  std::fflush(stdout);
  const pid_t hostile = ::fork();
  if (hostile == 0) {
    ::close(to_hostile[1]);
    ::_exit(be_hostile(options, service.socket(), to_hostile[0]));
  }
  ::close(to_hostile[0]);
  Verdict verdict;
  std::string wrong;
  std::uint64_t rounds = 0;
  int status = -1;
  {
    GoodTenant good(service.socket(), options.seed);
    bool served = good.start();
    const KnownToAll known = good.known();
    served = served && ::write(to_hostile[1], &known, sizeof(known)) == sizeof(known);
    ::close(to_hostile[1]);
    while (::waitpid(hostile, &status, WNOHANG) == 0) {
      if (served) {
        served = good.round();
      } else {
        ::usleep(1000);
      }
    }
    for (int i = 0; i < 100 && served; ++i) served = good.round();  // and afterwards
    wrong = good.wrong();
    rounds = good.rounds();
  }
  verdict.expect(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                 "what the hostile program tries costs nobody else anything");
  verdict.expect(wrong.empty() && rounds > 100,
                 fmt::format("{} operations of the good tenant {}", rounds, wrong));
  verdict.expect(service.alive(), "the service lives");
  std::string left = "not asked";
  Holdings after;
  for (int i = 0; i < 300 && service.alive(); ++i) {
    left = left_over(service.status());
    after = settled(service);
    if (left.empty() && after == before) break;
    ::usleep(100'000);
  }
  verdict.expect(left.empty(), "nothing is left of anybody " + left);
  verdict.expect(after == before,
                 fmt::format("descriptors {} and {}, mappings {} and {}", before.descriptors,
                             after.descriptors, before.shared_mappings, after.shared_mappings));
  const nlohmann::json last = service.status();
  if (last.contains("tenants")) {
    for (const auto& tenant : last["tenants"]) {
      fmt::print("       user {}: refused {}\n", tenant["user"].dump(), tenant["refused"].dump());
    }
  }
  verdict.expect(service.end(), "it ends with status 0");
  if (!verdict.good()) fmt::print("seed {}; the service's log:\n{}\n", options.seed, service.log());
  return verdict.good() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const paceline::config::Command app{"A hostile program against the service"};
  app.option("--service", options.service, "paceline-dataplane").required();
  app.option("--testbed", options.testbed, "with hosts h0 and h1").required();
  app.option("--seed", options.seed, "of everything random");
  app.option("--mutations", options.mutations, "at least so many");
  if (const auto ended = paceline::config::read_command_line(app, argc, argv, "hostile"))
    return *ended;
  fmt::print("seed {}, {} mutations\n", options.seed, options.mutations);

  std::string folder =
      (std::filesystem::temp_directory_path() / "paceline-hostile-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  const int result = run(options, folder);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return result;
}

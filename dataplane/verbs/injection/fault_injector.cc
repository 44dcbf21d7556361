#include "dataplane/verbs/injection/fault_injector.h"

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "dataplane/attach/message_socket.h"
#include "dataplane/attach/queues.h"
#include "dataplane/service/protocol/control_protocol.h"
#include "dataplane/verbs/service_link/settings.h"

namespace paceline::verbs {

namespace {

std::string error_text() { return std::strerror(errno); }

std::string line_of(const Injected& fault, std::uint32_t qp_number, double seconds) {
  std::array<char, 160> text{};
  std::snprintf(
      text.data(), text.size(),
      "fault %s: request %llu of queue pair 0x%06x, wr_id 0x%llx, %.6f s after its device "
      "was opened",
      std::string(enum_text(attach::kFaultKinds, fault.rule.kind)).c_str(),
      static_cast<unsigned long long>(fault.request), qp_number,
      static_cast<unsigned long long>(fault.wr_id), seconds);
  return text.data();
}

}  // namespace

std::shared_ptr<PairFaults> FaultInjector::for_pair(bool reliable) {
  return std::make_shared<PairFaults>(rules_, seed_, ++pairs_, reliable);
}

// As `paceline testbed fault NIC down --for TIME`, with that command's rights.
std::string FaultInjector::take_port_down(std::uint64_t micros) const {
  const attach::Descriptor socket = attach::connect_socket(service::control_socket_beside(socket_));
  if (!socket) return "no control socket: " + error_text();
  const std::string request = R"({"schema":1,"id":1,"op":"fault","events":[{"target":")" + nic_ +
                              R"(","action":"down","for_us":)" + std::to_string(micros) + "}]}";
  std::array<char, 1024> answer{};
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0 ||
      ::recv(socket.get(), answer.data(), answer.size() - 1, 0) <= 0) {
    return "control socket: " + error_text();
  }
  const bool good = std::strstr(answer.data(), "\"ok\":true") != nullptr;
  return good ? std::string() : std::string("refused: ") + answer.data();
}

// Into the pipe that the service writes to: events of a port alone are the service's to find.
std::string FaultInjector::raise_gid_change() const {
  const std::string name = "/proc/self/fd/" + std::to_string(notices_);
  const attach::Descriptor pipe(::open(name.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  const attach::AsyncNotice notice{IBV_EVENT_GID_CHANGE, 1};
  if (!pipe || ::write(pipe.get(), &notice, sizeof(notice)) < 0) {
    return "pipe of events: " + error_text();
  }
  return {};
}

void FaultInjector::carry_out(const std::vector<Injected>& faults, std::uint32_t qp_number) {
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - opened_;
  for (const Injected& fault : faults) {
    std::string failed;
    if (fault.rule.kind == attach::FaultKind::port_down) failed = take_port_down(fault.rule.for_us);
    if (fault.rule.kind == attach::FaultKind::gid_change) failed = raise_gid_change();
    say(line_of(fault, qp_number, since.count()) +
        (failed.empty() ? "" : ": not carried out, " + failed));
  }
}

std::unique_ptr<FaultInjector> fault_injector_of_environment(std::string socket, std::string nic,
                                                             int notices, std::string& error) {
  const char* const text = ::getenv(attach::kFaultVariable);
  if (text == nullptr || *text == '\0') return nullptr;
  std::vector<attach::FaultRule> rules;
  error = attach::parse_fault_rules(text, rules);
  std::uint64_t seed = 1;
  const char* const seed_text = ::getenv(attach::kSeedVariable);
  if (seed_text != nullptr && !attach::parse_count(seed_text, seed)) {
    error = std::string(attach::kSeedVariable) + ": expected a whole number";
  }
  if (!error.empty()) {
    error = std::string(attach::kFaultVariable) + ": " + error;
    return nullptr;
  }
  return std::make_unique<FaultInjector>(std::move(rules), seed, std::move(socket), std::move(nic),
                                         notices);
}

}  // namespace paceline::verbs

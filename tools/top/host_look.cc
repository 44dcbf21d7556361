#include "tools/top/host_look.h"

#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "dataplane/attach/text.h"
#include "tools/service_link/control_request.h"

namespace paceline::tools {

std::string HostLook::open(const std::string& control_socket, int& code) {
  ControlConnection control;
  code = control.open(control_socket);
  if (code != 0) return std::strerror(code);
  ControlConnection::Answer answer = control.ask({{"op", "telemetry"}});
  code = answer.code;
  if (!answer.errors.empty()) return answer.errors.front();
  if (answer.descriptors.size() != 1) return "it gives no telemetry segment";
  struct stat file {};
  if (::fstat(answer.descriptors.front().get(), &file) != 0) return std::strerror(errno);
  if (!memory_.open(std::move(answer.descriptors.front()), static_cast<std::size_t>(file.st_size),
                    false)) {
    return fmt::format("its telemetry segment cannot be mapped: {}", std::strerror(errno));
  }
  return reader_.open(memory_.bytes());
}

std::string HostLook::take(HostSample& out) {
  out.nics.clear();
  const auto pid = static_cast<pid_t>(reader_.header().service_pid);
  if (::kill(pid, 0) != 0 && errno == ESRCH)
    return fmt::format("the service, process {}, has ended", pid);
  telemetry::NicSample sample;
  for (std::size_t i = 0; i < reader_.nics().size(); ++i) {
    if (!reader_.read(i, sample)) return "the service has stopped writing its telemetry";
    const telemetry::NicText& text = reader_.nics()[i];
    NicLook nic;
    nic.name = text.name;
    nic.rate_bps = text.rate_bps;
    nic.algorithm = attach::text_of(sample.body.algorithm);
    nic.arm = sample.body.arm;
    nic.epoch = sample.body.epoch;
    nic.guard = sample.body.guard;
    nic.at_ns = sample.body.at_ns;
    nic.messages = sample.messages;
    for (std::size_t s = 0; s < sample.values.size(); ++s) {
      nic.values.emplace(reader_.series()[s].name, sample.values[s]);
    }
    telemetry::QueuePairRecord record;
    for (std::size_t r = 0; r < reader_.records(); ++r) {
      if (reader_.read_record(i, r, record) && record.number != 0) {
        nic.queue_pairs.push_back(record);
      }
    }
    out.nics.push_back(std::move(nic));
  }
  return {};
}

}  // namespace paceline::tools

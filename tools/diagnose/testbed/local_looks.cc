#include "tools/diagnose/testbed/local_looks.h"

#include <poll.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "dataplane/service/protocol/control_protocol.h"
#include "tools/cli/cli.h"
#include "tools/service_link/service_request.h"
#include "tools/top/host_look.h"

namespace paceline::tools {

namespace {

constexpr int kTries = 100;  // times 10 ms

class LocalLooks final : public HostLooks {
 public:
  explicit LocalLooks(std::string socket) : socket_(std::move(socket)) {}
  std::string open(int& code) {
    return telemetry_.open(service::control_socket_beside(socket_), code);
  }
  std::vector<SightedHost> take(double) override {
    std::vector<SightedHost> out(1);
    out.front().error = look(out.front().host);
    return out;
  }
  bool may_return() const override { return false; }

 private:
  std::string look(looks::SeenHost& out) {
    std::string lost = telemetry_.take(sample_);
    // A worker that the machine holds up in the middle of a writing comes back.
    for (int again = 0; again < kTries && !lost.empty() && !Interrupt::flag(); ++again) {
      ::poll(nullptr, 0, 10);
      lost = telemetry_.take(sample_);
    }
    if (!lost.empty()) return lost;
    const ServiceStatus status = service_status(socket_);
    if (!status.error.empty()) return status.error;
    out.start_unix_ns = telemetry_.start_unix_ns();
    for (NicLook& nic : sample_.nics) {
      looks::SeenNic& seen = out.nics.emplace_back();
      seen.name = nic.name;
      seen.rate_bps = nic.rate_bps;
      // As in a look that travels.
      std::erase_if(nic.queue_pairs, [](const auto& record) { return record.tx_bytes == 0; });
      seen.queue_pairs = std::move(nic.queue_pairs);
    }
    return looks::add_status(nlohmann::json::parse(status.json, nullptr, false), out.nics);
  }

  std::string socket_;
  HostLook telemetry_;
  HostSample sample_;
};

}  // namespace

std::unique_ptr<HostLooks> local_looks(const std::string& socket, std::string& error, int& code) {
  auto out = std::make_unique<LocalLooks>(socket);
  error = out->open(code);
  if (!error.empty()) return nullptr;
  return out;
}

}  // namespace paceline::tools

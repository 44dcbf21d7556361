// The test peer on our engine, over a packet socket: the whole way of a host, addresses and
// neighbours included.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "dataplane/driver/clock/tsc_clock.h"
#include "dataplane/neighbour/resolving_port.h"
#include "dataplane/transport/engine.h"
#include "tests/interop/packet_socket_port.h"
#include "tests/interop/peer/backend.h"
#include "tests/interop/peer/weather_port.h"

namespace paceline::interop {

struct EngineBackendOptions {
  std::string interface;
  wire::MacAddress mac;
  neighbour::HostAddress address;
  std::uint32_t ip_mtu = 4500;
  std::uint64_t seed = 1;
};

class EngineBackend final : public Backend {
 public:
  explicit EngineBackend(const EngineBackendOptions& options);

  Registered add_region(std::uint64_t bytes, bool remote) override;
  std::uint32_t make_qp(unsigned id, const QueuePairSpec& spec) override;
  void connect(unsigned id, const Remote& remote) override;
  void post(unsigned id, const Work& work) override;
  void receive(unsigned id, const Work& work) override;
  std::vector<Done> completed(unsigned id, bool receives) override;
  std::string state(unsigned id) override;
  void destroy(unsigned id) override;
  std::string address() override;
  void turn(int fd) override;
  //   weather in|out [drop=P] [duplicate=P] [reorder=P] [corrupt=P] [mark=P]
  //   spoil in|out OPCODE COUNT    the next packets get a wrong ICRC
  //   lose in|out OPCODE COUNT
  //   repeat in|out OPCODE         the last such packet again
  //   seen in|out [OPCODE]         ok COUNT, or all of RoCEv2 that are not 0 as OPCODE=COUNT
  //   counters                     ok NAME=COUNT..., those that are not 0
  //   whole                        nothing in flight, all conservation laws hold
  std::optional<std::string> other(std::span<const std::string> words) override;

 private:
  struct QueuePair {
    QueuePairSpec spec;
    std::uint32_t number = 0;
    std::unique_ptr<transport::CompletionQueue> send_cq;
    std::unique_ptr<transport::CompletionQueue> receive_cq;
    std::unique_ptr<transport::ReceiveQueue> receives;
    std::map<std::string, std::uint32_t> handles;
  };

  QueuePair& find(unsigned id);
  void lead(const QueuePair& pair, transport::QpState to);
  std::string counters() const;
  std::string whole() const;
  std::string seen(std::span<const std::string> words) const;

  neighbour::HostConfig host_;
  TscClock clock_;
  test::PacketSocketPort socket_;
  neighbour::ResolvingPort resolving_;
  WeatherPort weather_;
  transport::Engine engine_;
  Picos now_{0};
  std::uint64_t next_base_ = 0x10'0000'0000;
  std::vector<std::unique_ptr<std::vector<std::byte>>> memory_;
  std::map<unsigned, QueuePair> queue_pairs_;
};

}  // namespace paceline::interop

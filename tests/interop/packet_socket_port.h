// A port on a Linux packet socket: for tests that want the kernel as their peer. One system call a
// frame; nothing here is fast.
#pragma once

#include <string>
#include <vector>

#include "dataplane/port/packet_pool.h"
#include "dataplane/port/port.h"

namespace paceline::test {

class PacketSocketPort final : public Port {
 public:
  // Throws std::system_error with what failed: no such interface, no privilege.
  explicit PacketSocketPort(const std::string& interface);
  ~PacketSocketPort() override;

  std::size_t rx(std::span<Packet*> burst) override;
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;
  Picos rx_ready_at() const override { return Picos{0}; }
  Picos tx_ready_at(std::uint8_t) const override { return Picos{0}; }
  PacketPool& packets() override { return pool_; }
  PortInfo info() const override;

  // Sleeps until a frame is there or the time is over.
  void wait(int milliseconds) const { wait_beside(-1, milliseconds); }
  // Until there is something to read from `fd`, too; a negative one never has any.
  void wait_beside(int fd, int milliseconds) const;

 private:
  bool receive_one(Packet& packet);

  int socket_;
  PacketPool pool_;
  std::vector<std::byte> frame_;  // as received
};

}  // namespace paceline::test

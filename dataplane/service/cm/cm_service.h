// Connects the connection manager to programs: owns the sockets of their channels, and the timer.
// Runs on the control thread.
//
// A channel is a pair of sockets. The program holds one of them as its descriptor of
// /dev/infiniband/rdma_cm. One byte waits in it as long as an event waits, so that poll(), epoll
// and a blocking read behave as with the kernel's device. The service's end closes when the last
// descriptor of the program's end is closed, in whichever process that is.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "dataplane/attach/descriptors/descriptor.h"
#include "dataplane/service/cm/abi/ucm_commands.h"
#include "dataplane/service/cm/manager/connection_manager.h"
#include "dataplane/service/limits/tenant.h"

namespace paceline::service::cm {

struct CmCounts {
  std::size_t channels = 0;
  std::size_t ids = 0;
  std::size_t listeners = 0;  // among the ids
};

class CmService {
 public:
  // Takes a message to another machine. A message that is lost on the way is sent again in time.
  using Leave = std::function<void(const Parcel&)>;

  CmService(boost::asio::io_context& context, NicBook nics, Leave leave);
  CmService(const CmService&) = delete;
  CmService& operator=(const CmService&) = delete;

  const NicBook& nics() const { return manager_.nics(); }

  // Returns 0 or an errno. `owner` is a number of the program; `allowance` counts the descriptors
  // that its user may have. `programs_end` stays open until the next handler of the context runs:
  // send it before that.
  int open_channel(std::uint32_t owner, const Visible& seen, Allowance& allowance,
                   std::uint32_t& channel, int& programs_end);
  // Closes all channels of a program that has ended.
  void close_channels(std::uint32_t owner);

  struct Ran {
    UcmResult result;
    // No event waits any more: the program must read the byte from its end.
    bool drained = false;
    bool other_drained = false;  // likewise, for UcmRequest::other_channel
  };
  // The error is EACCES if the channel belongs to another program.
  Ran run(std::uint32_t owner, const UcmRequest& request);

  // An instance has left the machine: see ConnectionManager::take_away().
  void take_away(std::size_t nic);
  // A message of another machine: see ConnectionManager::arrive().
  void arrive(const Parcel& parcel, std::span<const std::byte> bytes);

  CmCounts counts(std::uint32_t owner) const;
  const MadCounts& messages() { return manager_.mail().counts(); }

 private:
  struct Socket {
    Socket(boost::asio::io_context& context, std::uint32_t of) : end(context), owner(of) {}
    boost::asio::posix::stream_descriptor end;
    std::uint32_t owner;
    Held held;
    attach::Descriptor programs_end;
    bool readable = false;  // the byte is in the program's end
  };

  bool owns(std::uint32_t owner, std::uint32_t channel) const;
  void watch(std::uint32_t channel);
  void close(std::uint32_t channel);
  // Wakes programs, sets the timer and lets messages leave. Call it after anything that may queue
  // events or start timers.
  void settle();
  bool drain(std::uint32_t channel);

  boost::asio::io_context& context_;
  boost::asio::steady_timer timer_;
  Nanos armed_ = kNeverNanos;
  ConnectionManager manager_;
  Leave leave_;
  UcmCommands commands_{manager_};
  std::map<std::uint32_t, Socket> sockets_;
};

}  // namespace paceline::service::cm

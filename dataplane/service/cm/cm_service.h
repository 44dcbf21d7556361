// The connection manager where it meets programs: the sockets of their channels, and time. On the
// control thread.
//
// A channel is a pair of sockets. The program has one of them as its descriptor of
// /dev/infiniband/rdma_cm, and it is readable, one byte, as long as an event waits; so poll(),
// epoll and a blocking read see what they would see of the kernel's device. This end sees when the
// last descriptor of the other has gone, in whichever process it was.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <map>
#include <utility>

#include "dataplane/attach/descriptor.h"
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
  CmService(boost::asio::io_context& context, NicBook nics);
  CmService(const CmService&) = delete;
  CmService& operator=(const CmService&) = delete;

  const NicBook& nics() const { return manager_.nics(); }

  // `owner`: a number of the program; `allowance`: the descriptors that its user may have. 0 or an
  // errno. `programs_end` is open until the context's next handler: it is sent meanwhile.
  int open_channel(std::uint32_t owner, const Visible& seen, Allowance& allowance,
                   std::uint32_t& channel, int& programs_end);
  // All of a program that has ended.
  void close_channels(std::uint32_t owner);

  struct Ran {
    UcmResult result;
    // The program takes the byte out of its end: no event waits any more.
    bool drained = false;
    bool other_drained = false;  // that of UcmRequest::other_channel
  };
  // EACCES: the channel is not this program's.
  Ran run(std::uint32_t owner, const UcmRequest& request);

  CmCounts counts(std::uint32_t owner) const;

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
  // After anything that may have queued events or started timers.
  void settle();
  bool drain(std::uint32_t channel);

  boost::asio::io_context& context_;
  boost::asio::steady_timer timer_;
  Nanos armed_ = kNeverNanos;
  ConnectionManager manager_;
  UcmCommands commands_{manager_};
  std::map<std::uint32_t, Socket> sockets_;
};

}  // namespace paceline::service::cm

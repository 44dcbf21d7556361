// One connection between ranks, which never waits: what cannot be sent yet is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/attach/descriptors/descriptor.h"
#include "tools/task/ranks/frames.h"

namespace paceline::tools {

// How much went through sockets and how often the kernel was called for it.
struct SocketCost {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
};

class RankSocket {
 public:
  // A connected TCP socket. `most`: bytes of a frame that may come.
  RankSocket(attach::Descriptor socket, std::size_t most);

  int descriptor() const { return socket_.get(); }
  FrameReader& frames() { return frames_; }

  // Sends what the kernel takes. False: the other end is gone, or has left more than kMostUnsent
  // unread.
  bool send(std::string_view frames, SocketCost& cost);
  bool flush(SocketCost& cost);
  bool has_unsent() const { return sent_ != unsent_.size(); }
  // Takes in what has come. False: the other end is gone.
  bool receive(SocketCost& cost);

 private:
  static constexpr std::size_t kMostUnsent = std::size_t{1} << 30;

  attach::Descriptor socket_;
  FrameReader frames_;
  std::string unsent_;
  std::size_t sent_ = 0;  // of unsent_
};

}  // namespace paceline::tools

// The connections of rank 0: lets ranks in, drops strangers, carries frames. Knows nothing of
// tasks. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/attach/descriptors/descriptor.h"
#include "tools/task/ranks/frames.h"
#include "tools/task/ranks/rank_socket.h"

namespace paceline::tools {

struct PeerEvent {
  enum class Kind : std::uint8_t {
    came,      // a rank with the token; `text` is empty
    frame,     // `frame` and its payload in `text`
    gone,      // a rank; `text` says how: "rank 3 on node7 has ended"
    stranger,  // somebody else was dropped; `text` says who and why
  };
  Kind kind = Kind::came;
  std::uint32_t rank = 0;
  FrameKind frame = FrameKind::hello;
  std::string text;
};

class RankPeers {
 public:
  // Lets in ranks 1 to ranks - 1. Throws std::runtime_error where it cannot listen.
  RankPeers(std::string token, std::uint32_t ranks);

  std::uint16_t port() const { return port_; }

  // What has happened, after at most `milliseconds`. Returns earlier, maybe with nothing, when
  // `other` is readable (-1: none). `now` in seconds.
  std::vector<PeerEvent> wait(int milliseconds, int other, double now);
  // Before the descriptor that wait() was given last is closed: another one may get its number.
  void forget_other();

  bool has(std::uint32_t rank) const { return by_rank_.contains(rank); }
  std::size_t count() const { return by_rank_.size(); }
  const Hello& hello(std::uint32_t rank) const;
  std::string name(std::uint32_t rank) const;  // "rank 3 on node7"

  // To a rank that is here. One that is gone is reported by the next wait().
  void send(std::uint32_t rank, std::string_view frames);
  // The command ends for this rank; no `gone` follows.
  void drop(std::uint32_t rank);
  // Tells all ranks that the command has ended, and waits at most `seconds` for them to hear it.
  // `whole`: Stop::whole.
  void stop_all(bool whole, double seconds);

  const SocketCost& cost() const { return cost_; }

 private:
  struct Peer {
    RankSocket socket;
    std::string address;
    std::string nonce;
    double since = 0;
    bool proven = false;
    Hello hello{};
    std::string gone{};  // not empty: it is, and this is how
  };
  using Peers = std::map<int, Peer>;  // by descriptor

  void take_in(double now, std::vector<PeerEvent>& events);
  void hear(int descriptor, std::vector<PeerEvent>& events);
  void prove(Peer& peer, const Frame& frame, std::vector<PeerEvent>& events);
  void watch(const Peer& peer, int operation);
  void end(int descriptor, std::vector<PeerEvent>& events);
  void end_old_strangers(double now);
  std::size_t strangers() const { return peers_.size() - by_rank_.size(); }

  std::string token_;
  std::uint32_t ranks_;
  std::uint16_t port_ = 0;
  attach::Descriptor listening_;
  attach::Descriptor epoll_;
  int other_ = -1;  // what epoll_ watches for the caller
  Peers peers_;
  std::map<std::uint32_t, int> by_rank_;
  SocketCost cost_;
};

}  // namespace paceline::tools

// The connections of rank 0: accepts ranks, drops other clients ("strangers"), carries frames.
// Knows nothing of tasks. One thread.
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
    came,      // a rank has proved that it has the token; `text` is empty
    frame,     // a frame has arrived: `frame`, and its payload in `text`
    gone,      // a rank was lost; `text` says how: "rank 3 on node7 has ended"
    stranger,  // another client was dropped; `text` has its address and the reason
  };
  Kind kind = Kind::came;
  std::uint32_t rank = 0;
  FrameKind frame = FrameKind::hello;
  std::string text;
};

class RankPeers {
 public:
  // Accepts ranks 1 to ranks - 1. Throws std::runtime_error if it cannot listen.
  RankPeers(std::string token, std::uint32_t ranks);

  std::uint16_t port() const { return port_; }

  // Returns events, after at most `milliseconds`; earlier, maybe without events, when `other` is
  // readable (-1: none). `now` in seconds.
  std::vector<PeerEvent> wait(int milliseconds, int other, double now);
  // Call it before closing the last `other` of wait(): a new descriptor may get its number.
  void forget_other();

  bool has(std::uint32_t rank) const { return by_rank_.contains(rank); }
  std::size_t count() const { return by_rank_.size(); }
  const Hello& hello(std::uint32_t rank) const;
  std::string name(std::uint32_t rank) const;  // "rank 3 on node7"

  // To a rank that is connected. If it turns out to be gone, the next wait() reports it.
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
    std::string gone{};  // how it was lost; empty: it was not
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

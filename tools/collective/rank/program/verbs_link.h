// The link over verbs: a reliable connection for each channel of each peer, one region of staging
// memory, one completion queue. It sleeps where nothing happens.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/collective/rank/peer_traffic.h"
#include "tools/collective/rank/rank_link.h"

namespace paceline::rank {

class VerbsLink final : public RankLink {
 public:
  // Opens the one device that the process sees.
  VerbsLink(std::uint64_t staging_bytes, const std::vector<PeerTraffic>& traffic);
  ~VerbsLink() override;
  VerbsLink(const VerbsLink&) = delete;
  VerbsLink& operator=(const VerbsLink&) = delete;

  std::vector<LinkAddress> addresses() const;  // LinkAddress::rank: the peer that it is for
  void connect(const std::vector<LinkAddress>& peers);

  // wait() without `until` gives up when nothing has happened for this long, or when this
  // descriptor can be read.
  void give_up(double seconds, int descriptor);

  std::byte* staging() override { return memory_; }
  void write(const LinkRoute& to, std::uint64_t own_offset, std::uint64_t peer_offset,
             std::uint64_t bytes, std::uint32_t word) override;
  void tell(const LinkRoute& to, std::uint32_t word) override;
  void wait(std::vector<LinkEvent>& events, LinkWake wake, LinkTime until) override;

 private:
  struct Connection {
    std::uint32_t peer = 0;
    std::uint64_t channel = 0;
    std::uint8_t service_level = 0;
    ibv_qp* queue_pair = nullptr;
    LinkAddress address;
  };

  void open_device();
  void register_memory(std::uint64_t bytes);
  void make_queues(const std::vector<PeerTraffic>& traffic);
  void make_queue_pair(const PeerTraffic& traffic);
  void connect_one(Connection& connection);
  std::uint32_t number_of(const LinkRoute& route) const;
  void post_receive(std::uint32_t number);
  void post_send(std::uint32_t number, ibv_send_wr& request, std::uint32_t word);
  bool poll(std::vector<LinkEvent>& events);
  LinkEvent event_of(const ibv_wc& completion);
  bool sleep_until(LinkTime limit);
  [[noreturn]] void fail(const std::string& what, int error) const;

  std::vector<Connection> connections_;
  // By peer and channel, into connections_.
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> numbers_;
  ibv_context* device_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* completions_ = nullptr;
  ibv_mr* region_ = nullptr;
  union ibv_gid gid_ {};
  std::byte* memory_ = nullptr;
  std::size_t memory_bytes_ = 0;
  double patience_ = 60;
  int watched_ = -1;
  unsigned unacknowledged_ = 0;  // events of the channel
};

}  // namespace paceline::rank

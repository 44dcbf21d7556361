// The test peer on libibverbs: whatever RDMA device the kernel has, Soft-RoCE in the guest.
#pragma once

#include <infiniband/verbs.h>

#include <map>
#include <memory>
#include <vector>

#include "tests/interop/peer/backend.h"

namespace paceline::interop {

class VerbsBackend final : public Backend {
 public:
  // The first device there is.
  VerbsBackend();
  ~VerbsBackend() override;

  Registered add_region(std::uint64_t bytes, bool remote) override;
  std::uint32_t make_qp(unsigned id, const QueuePairSpec& spec) override;
  void connect(unsigned id, const Remote& remote) override;
  void post(unsigned id, const Work& work) override;
  void receive(unsigned id, const Work& work) override;
  std::vector<Done> completed(unsigned id, bool receives) override;
  std::string state(unsigned id) override;
  void destroy(unsigned id) override;
  // INDEX=GID...
  std::string address() override;
  void turn(int fd) override;
  // shell COMMAND...: its output, and the exit status.
  std::optional<std::string> other(std::span<const std::string> words) override;

 private:
  struct QueuePair {
    QueuePairSpec spec;
    ibv_cq* send_cq = nullptr;
    ibv_cq* receive_cq = nullptr;
    ibv_qp* qp = nullptr;
    std::map<std::string, ibv_ah*> handles;
  };
  struct Memory {
    ibv_mr* region;
    std::unique_ptr<std::byte[], void (*)(void*)> bytes;
  };

  QueuePair& find(unsigned id);
  std::uint8_t gid_index_towards(const std::string& ip) const;
  ibv_ah_attr way_to(const std::string& ip) const;
  void modify(ibv_qp* qp, ibv_qp_attr& attributes, int mask, const char* what) const;

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  std::vector<Memory> memory_;
  std::map<unsigned, QueuePair> queue_pairs_;
};

}  // namespace paceline::interop

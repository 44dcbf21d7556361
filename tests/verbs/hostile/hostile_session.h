// A hostile program's session: two ends that are connected to one another or to another program,
// with everything that a session may have, and what is done to it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/verbs/hostile/arena.h"
#include "tests/verbs/hostile/good_tenant.h"
#include "tests/verbs/hostile/odd_values.h"
#include "tests/verbs/hostile/raw_end.h"

namespace paceline::test {

struct HostileWorld {
  std::string socket;
  KnownToAll neighbour;
  OddValues odd;
  Arena arena;
  // Descriptors of sessions that are over, and of the wrong kind.
  std::vector<attach::Descriptor> old;
  std::uint64_t mutations = 0;
  std::string wrong;  // what the service has let happen

  void keep(attach::Descriptor descriptor) {
    if (old.size() < 24) {
      old.push_back(std::move(descriptor));
    } else {
      old[odd.below(old.size())] = std::move(descriptor);
    }
  }
};

class HostileSession {
 public:
  explicit HostileSession(HostileWorld& world)
      : w_(world), ends_{RawEnd(w_.socket), RawEnd(w_.socket)} {}

  // False when the service refuses: the quota is reached.
  bool make();
  // One thing that no good program does. False when the session is over.
  bool mutate();

 private:
  RawEnd& one() { return ends_[w_.odd.below(2)]; }
  bool register_memory(RawEnd& end);
  void spoil_rings(RawEnd& end);
  void spoil_indices(RawEnd& end);
  void spoil_waiting(RawEnd& end);
  void post_lies(RawEnd& end);
  void pull_memory();
  // A request of any kind, more or less right. False when the session is over.
  bool ask_lies(RawEnd& end);
  std::vector<std::byte> body_of(attach::Operation operation, RawEnd& end);
  bool send_raw(RawEnd& end, attach::Operation operation, std::vector<std::byte> body);
  std::vector<int> wrong_descriptors();
  bool answered(RawEnd& end);
  bool harmless(const std::vector<std::byte>& body) const;

  HostileWorld& w_;
  RawEnd ends_[2];
  attach::Descriptor memory_;  // shared with the service
  std::vector<std::uint32_t> keys_;
  std::unique_ptr<attach::SharedMemory> shared_receives_;
  std::uint32_t shared_bell_ = 0;
};

}  // namespace paceline::test

// Objects of a session on the control thread; they own the parts that the worker uses. An object
// counts the objects that use it and is not destroyed before them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "dataplane/attach/protocol.h"
#include "dataplane/attach/shared_memory.h"
#include "dataplane/service/adapters/completion_adapter.h"
#include "dataplane/service/adapters/notifier.h"
#include "dataplane/service/adapters/pair_adapter.h"
#include "dataplane/service/adapters/receive_adapter.h"
#include "dataplane/service/limits/tenant.h"
#include "dataplane/service/memory/tenant_memory.h"
#include "dataplane/service/workers/domain_book.h"

namespace paceline::service {

struct ProtectionDomain {
  Held place;                // in its tenant's quota
  std::uint32_t number = 0;  // of the service: no two sessions have the same
  std::uint32_t uses = 0;
};

// The share of its tenant's quotas that a queue uses.
struct QueueShare {
  Held bytes;
  Held descriptor;
};

struct Channel {
  Held descriptors;
  Pipe pipe;
  std::uint32_t uses = 0;
};

struct CompletionObject {
  QueueShare share;
  attach::SharedMemory memory;
  std::unique_ptr<CompletionAdapter> adapter;
  Channel* channel = nullptr;
  std::uint32_t uses = 0;
};

// As a session has it.
struct DomainObject {
  Held place;  // among the protection domains of its tenant
  std::shared_ptr<Domain> domain;
  std::uint32_t uses = 0;
};

struct SharedReceiveObject {
  QueueShare share;
  attach::SharedMemory memory;
  std::unique_ptr<SharedReceives> receives;
  ProtectionDomain* pd = nullptr;
  DomainObject* domain = nullptr;  // of XRC; then with `cq` and `number`
  CompletionObject* cq = nullptr;
  std::uint32_t number = 0;
  std::uint32_t bell = 0;
  std::uint32_t requests = 0;
  std::uint32_t segments = 0;
  std::uint32_t uses = 0;
};

struct PairObject {
  QueueShare share;
  attach::SharedMemory memory;
  std::unique_ptr<OwnReceives> receives;
  std::shared_ptr<PairAdapter> adapter;  // a target of XRC: of all sessions that have opened it
  DomainObject* domain = nullptr;        // likewise; it has nothing of what follows, but a type
  ProtectionDomain* pd = nullptr;
  CompletionObject* send_cq = nullptr;
  CompletionObject* receive_cq = nullptr;
  SharedReceiveObject* srq = nullptr;
  std::uint32_t bell = 0;
  attach::PairType type = attach::PairType::rc;
  attach::QpValues values{};  // as they were last set
};

struct RegionObject {
  std::unique_ptr<RegionMemory> memory;
  ProtectionDomain* pd = nullptr;
  std::uint64_t iova = 0;
  std::uint64_t length = 0;
  std::uint64_t mappings = 0;
  std::uint32_t access = 0;
  std::uint32_t key = 0;
};

struct WindowObject {
  ProtectionDomain* pd = nullptr;
  std::uint32_t key = 0;  // the first; the upper 24 bits are still right
};

struct AddressHandleObject {
  ProtectionDomain* pd = nullptr;
};

// Objects of one kind by handle, in the order they were made. A handle is not used twice until 2^32
// of them were given out.
template <class T>
class HandleTable {
 public:
  // The handle of the next object: reserve, then insert under that handle.
  std::uint32_t next() {
    do {
      if (++last_ == 0) ++last_;
    } while (objects_.contains(last_));
    return last_;
  }
  T& insert(std::uint32_t handle, T object) {
    return objects_.insert_or_assign(handle, std::move(object)).first->second;
  }
  // nullptr when there is none; addresses are stable.
  T* find(std::uint32_t handle) {
    const auto at = objects_.find(handle);
    return at == objects_.end() ? nullptr : &at->second;
  }
  void erase(std::uint32_t handle) { objects_.erase(handle); }
  void clear() { objects_.clear(); }
  std::size_t size() const { return objects_.size(); }
  auto begin() { return objects_.begin(); }
  auto end() { return objects_.end(); }

 private:
  std::map<std::uint32_t, T> objects_;
  std::uint32_t last_ = 0;
};

}  // namespace paceline::service

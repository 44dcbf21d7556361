// Address handles: the destination of datagrams (InfiniBand vol. 1, 11.2.2.1) and the congestion
// context that paces them. All queue pairs that send to one peer in one class share that context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "dataplane/base/units.h"
#include "dataplane/transport/interface/attributes.h"
#include "dataplane/wire/packet/header_template.h"

namespace paceline::transport {

struct AddressHandle {
  QpPath path{};
  std::uint32_t pd = 0;
  std::uint32_t number = 0;  // index << 8 | generation
  std::uint32_t peer = 0xFFFF'FFFF;
  std::uint32_t context = 0xFFFF'FFFF;
  std::uint32_t uses = 0;  // queued datagrams to this destination
  bool in_use = false;
  wire::HeaderTemplate header;
};

class AddressHandleTable {
 public:
  AddressHandle& add() {
    std::uint32_t index = static_cast<std::uint32_t>(handles_.size());
    std::uint32_t generation = 1;
    if (free_.empty()) {
      handles_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
      generation = (handles_[index].number + 1) & 0xFF;
    }
    handles_[index] = AddressHandle{};
    handles_[index].number = index << 8 | generation;
    handles_[index].in_use = true;
    return handles_[index];
  }
  void remove(AddressHandle& handle) {
    handle.in_use = false;
    free_.push_back(handle.number >> 8);
  }
  // nullptr if no handle has this number. The pointer is valid until the next add().
  const AddressHandle* find(std::uint32_t number) const {
    const std::uint32_t index = number >> 8;
    if (index >= handles_.size()) return nullptr;
    const AddressHandle& handle = handles_[index];
    return handle.in_use && handle.number == number ? &handle : nullptr;
  }
  AddressHandle* find(std::uint32_t number) {
    return const_cast<AddressHandle*>(std::as_const(*this).find(number));
  }
  AddressHandle& operator[](std::uint32_t index) { return handles_[index]; }
  const AddressHandle& operator[](std::uint32_t index) const { return handles_[index]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(handles_.size()); }

 private:
  std::vector<AddressHandle> handles_;
  std::vector<std::uint32_t> free_;
};

// When a flow of datagrams (source address and queue pair) last got a CNP: one slot of a hash table
// of fixed size. Flows with the same slot share one CNP interval.
struct LastDatagramCnp {
  Picos last{-1};  // negative: no CNP yet
};

}  // namespace paceline::transport

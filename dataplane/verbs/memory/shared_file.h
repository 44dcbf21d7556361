// The memory that this program shares with the service: one file in memory, as long as files can be
// and almost all of it a hole, sealed against shrinking. Each shared range gets a slot of its own,
// far from the next: memory that the program lets grow in place (mremap) grows into the hole.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/attach/descriptors/own_descriptor.h"
#include "dataplane/verbs/memory/address_map.h"

namespace paceline::verbs {

class SharedFile {
 public:
  static constexpr std::uint64_t kSlotBytes = std::uint64_t{64} << 30U;
  static constexpr std::uint64_t kSlots = (std::uint64_t{1} << 62U) / kSlotBytes;
  // Offsets are congruent to addresses modulo this: large pages would fit.
  static constexpr std::uint64_t kAlignment = std::uint64_t{2} << 20U;
  static constexpr std::uint64_t kMostBytes = kSlotBytes - kAlignment;  // in a slot

  // False, with errno.
  bool open();
  void close();
  // There is one, and the program has not closed it.
  explicit operator bool() const { return static_cast<bool>(file_); }
  int descriptor() const { return file_.get(); }
  bool owns(const Mapping& mapping) const {
    return mapping.inode == inode_ && mapping.device == device_ && mapping.inode != 0;
  }

  // Finds a place for up to kMostBytes at `address`. False: all slots are taken.
  bool take_slot(std::uint64_t address, std::uint64_t& offset);
  // Frees the pages, and the slot. Nobody maps any of it.
  void give_back(std::uint64_t offset, std::uint64_t bytes);
  static std::uint64_t slot_begin(std::uint64_t offset) { return offset / kSlotBytes * kSlotBytes; }

 private:
  attach::OwnDescriptor file_;
  std::uint64_t inode_ = 0;
  std::uint64_t device_ = 0;
  std::uint64_t next_ = 0;           // slot
  std::vector<std::uint64_t> free_;  // slots
};

}  // namespace paceline::verbs

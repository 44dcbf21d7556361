// The registered memory of this program, and how the service reaches it. Whole pages of private
// anonymous memory inside a registered range become pages of the shared file (page_swap.h).
// Everything else, such as pages that are registered in part, is copied by the service through the
// program's address space. docs/service.md has the reasons and the limits.
//
// Pages are handled in pieces. A piece belongs to every registration that touches it; when the last
// one is released, shared pages become private again. Pages that are copied are copied until then,
// even if a later registration covers them whole: the service might be copying, and all atomic
// operations on a word must go the same way.
//
// One per process (pages are shared once, whatever the number of devices). Any thread may call.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "dataplane/attach/descriptors/descriptor.h"
#include "dataplane/attach/protocol.h"
#include "dataplane/verbs/memory/address_map.h"
#include "dataplane/verbs/memory/page_hold.h"
#include "dataplane/verbs/memory/page_swap.h"
#include "dataplane/verbs/memory/shared_file.h"

namespace paceline::verbs {

enum class MemoryMode : std::uint8_t {
  automatic,  // shared where possible, otherwise by copy
  share,      // as automatic, but a registration of pages that could be shared and are not fails
  copy,       // nothing is shared
};
// The value of PACELINE_MEMORY: auto (or nullptr), share, copy. False: none of these.
bool parse_memory_mode(const char* text, MemoryMode& out);

struct RegistrationCounters {
  std::uint64_t shared_bytes = 0;  // now, of the program's address space
  std::uint64_t shares = 0;        // pieces that were made shared
  std::uint64_t returns = 0;       // and made private again
  std::uint64_t kept = 0;          // that could not be, or must not
  std::uint64_t refused = 0;       // that the kernel would not make shared
};

class RegistrationMap {
 public:
  // Extents of one registration.
  class Held;

  explicit RegistrationMap(MemoryMode mode);
  RegistrationMap(const RegistrationMap&) = delete;
  RegistrationMap& operator=(const RegistrationMap&) = delete;
  ~RegistrationMap();

  // The descriptor that a session passes with share_memory; -1: nothing to share. A child has
  // another one after fork().
  int descriptor();
  // The reply to share_memory: an open /dev/userfaultfd, or nothing. The first usable one is used.
  void hold_with(const attach::Descriptor& device);

  // Before register_region: how the service reaches [address, address + length). 0, or an errno,
  // and nothing has changed: EINVAL, EFAULT (nothing there, or not readable), ENOMEM.
  int prepare(std::uint64_t address, std::uint64_t length, Held& out);
  // Call it after the service has replied to deregister_region, or refused register_region: nothing
  // of it is mapped there, and no copy is in progress.
  void release(Held& held);

  RegistrationCounters counters();

  // --- around fork(), see fork_guard.h ---
  void before_fork() { mutex_.lock(); }
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  enum class Way : std::uint8_t { copied, shared };
  struct Piece {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t offset = 0;  // shared: in the file
    std::uint32_t users = 0;
    Way way = Way::copied;
    bool lost = false;    // not among pieces_: something else is mapped there now
    bool forked = false;  // a child may look at these pages of the file
    std::list<Piece>::iterator self;
  };
  using Pieces = std::map<std::uint64_t, Piece*>;  // by their begin; they do not overlap

  void open_file();
  void restart();
  bool can_share();
  Piece* piece_over(std::uint64_t address, std::uint64_t& next_begin);
  bool still_ours(const Piece& piece) const;
  int cover(std::uint64_t address, std::uint64_t length, std::vector<Piece*>& out);
  int cover_mapping(const Mapping& mapping, std::uint64_t begin, std::uint64_t end,
                    std::uint64_t inner_begin, std::uint64_t inner_end, std::vector<Piece*>& out);
  Piece* add(std::uint64_t begin, std::uint64_t end, Way way, std::uint64_t offset);
  std::uint64_t share_pages(const Mapping& mapping, std::uint64_t begin, std::uint64_t end,
                            std::uint64_t& offset);
  void drop(Piece& piece);
  void take_back(Piece& piece);
  bool in_slot(const Mapping& mapping, std::uint64_t slot) const;
  bool mapped_anywhere(std::uint64_t slot) const;

  const MemoryMode mode_;
  std::mutex mutex_;
  AddressMap addresses_;
  SharedFile file_;
  PageHold hold_;
  std::list<Piece> storage_;
  Pieces pieces_;
  std::uint64_t most_mappings_ = 0;  // of this process; beyond this nothing more is shared
  std::uint64_t until_count_ = 0;    // shares until the mappings are counted again
  bool crowded_ = false;             // too many of them
  RegistrationCounters counters_;
  std::unique_ptr<PageSwap> swap_;
};

class RegistrationMap::Held {
 public:
  // Covers the range in order, as register_region wants it.
  const std::vector<attach::Extent>& extents() const { return extents_; }
  // The same range, all of it by copy: for a service that shares no memory.
  attach::Extent by_copy() const { return {length_, 0, attach::ExtentKind::by_copy, 0}; }
  bool empty() const { return length_ == 0; }

 private:
  friend class RegistrationMap;
  void describe();
  std::uint64_t address_ = 0;
  std::uint64_t length_ = 0;
  std::vector<attach::Extent> extents_;
  std::vector<Piece*> pieces_;
};

}  // namespace paceline::verbs

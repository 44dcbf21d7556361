#include "dataplane/verbs/memory/registration_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "dataplane/verbs/memory/page.h"

namespace paceline::verbs {

namespace {

// vm.max_map_count, or its default.
std::uint64_t mappings_allowed() {
  std::uint64_t limit = 65'530;
  const attach::Descriptor file(::open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC));
  std::array<char, 32> text{};
  const ssize_t n = file ? ::read(file.get(), text.data(), text.size()) : 0;
  if (n > 0) std::from_chars(text.data(), text.data() + n, limit);
  return limit;
}

// The number of shares between two counts of the process's mappings; each share may add two.
constexpr std::uint64_t kCountEvery = 256;
// Part of the stack below the caller that this library and its system calls use.
constexpr std::uint64_t kOwnStack = std::uint64_t{1} << 20U;

// Pages of the stack that the caller is using can not be held: it would hold itself.
[[gnu::noinline]] bool holds_own_stack(std::uint64_t begin, std::uint64_t end) {
  volatile char here = 0;
  const auto at = reinterpret_cast<std::uintptr_t>(&here);
  return begin <= at && end > at - kOwnStack;
}

// Private anonymous memory that can be written.
bool fit(const Mapping& mapping) {
  return mapping.readable && mapping.writable && !mapping.shared && mapping.inode == 0;
}

}  // namespace

bool parse_memory_mode(const char* text, MemoryMode& out) {
  const std::string_view mode = text == nullptr ? "auto" : text;
  if (mode == "auto") {
    out = MemoryMode::automatic;
  } else if (mode == "share") {
    out = MemoryMode::share;
  } else if (mode == "copy") {
    out = MemoryMode::copy;
  } else {
    return false;
  }
  return true;
}

RegistrationMap::RegistrationMap(MemoryMode mode)
    : mode_(mode), most_mappings_(mappings_allowed() / 2) {
  if (mode_ != MemoryMode::copy) open_file();
}

// Shared pages stay shared: they belong to the program, which may be using them.
RegistrationMap::~RegistrationMap() = default;

void RegistrationMap::open_file() {
  if (!addresses_.open() || !file_.open()) file_.close();
}

int RegistrationMap::descriptor() {
  const std::lock_guard lock(mutex_);
  if (!file_ && mode_ != MemoryMode::copy) {
    restart();
    open_file();
  }
  return file_.descriptor();
}

void RegistrationMap::hold_with(const attach::Descriptor& device) {
  const std::lock_guard lock(mutex_);
  if (!file_ || hold_) return;
  attach::Descriptor own;
  if (!device) own.reset(::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
  if (hold_.open(device ? device : own) == 0) {
    swap_ = std::make_unique<PageSwap>(&hold_, file_.descriptor());
  }
}

int RegistrationMap::prepare(std::uint64_t address, std::uint64_t length, Held& out) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62U;
  if (length == 0 || length > kMost || address > kMost || !out.empty()) return EINVAL;
  const std::lock_guard lock(mutex_);
  if (!addresses_ && !addresses_.open()) {
    // Nothing is known about this process: the service will find out what is there.
    out.address_ = address;
    out.length_ = length;
    out.describe();
    return 0;
  }
  std::vector<Piece*> pieces;
  const int error = cover(address, length, pieces);
  if (error != 0) {
    for (Piece* const piece : pieces) drop(*piece);
    return error;
  }
  out.address_ = address;
  out.length_ = length;
  out.pieces_ = std::move(pieces);
  out.describe();
  return 0;
}

void RegistrationMap::release(Held& held) {
  const std::lock_guard lock(mutex_);
  for (Piece* const piece : held.pieces_) drop(*piece);
  held = Held();
}

RegistrationCounters RegistrationMap::counters() {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void RegistrationMap::Held::describe() {
  std::uint64_t at = address_;
  const std::uint64_t end = address_ + length_;
  for (const Piece* const piece : pieces_) {
    attach::Extent extent;
    extent.length = std::min(piece->end, end) - at;
    if (piece->way == Way::shared) {
      extent.kind = attach::ExtentKind::shared;
      extent.offset = piece->offset + (at - piece->begin);
    }
    at += extent.length;
    if (!extents_.empty() && extents_.back().kind == extent.kind &&
        (piece->way == Way::copied ||
         extents_.back().offset + extents_.back().length == extent.offset)) {
      extents_.back().length += extent.length;
    } else {
      extents_.push_back(extent);
    }
  }
  if (extents_.empty() || extents_.size() > attach::kMaxExtents) extents_.assign(1, by_copy());
}

void RegistrationMap::after_fork_in_parent() {
  for (Piece& piece : storage_) piece.forked = true;
  mutex_.unlock();
}

// The child keeps its own copy of its memory, as fork() makes it. Pages that it has not written yet
// may still change with the parent. It shares none of it with any service, and starts again.
void RegistrationMap::after_fork_in_child() {
  counters_ = {};
  if (file_) {
    AddressMap mine;  // the file of /proc is the parent's
    Mapping mapping;
    if (mine.open()) {
      for (std::uint64_t at = 0; mine.at_or_after(at, mapping); at = mapping.end) {
        if (!file_.owns(mapping) || !mapping.shared) continue;
        if (::mmap(pointer_to(mapping.begin), mapping.end - mapping.begin, mapping.protection(),
                   MAP_PRIVATE | MAP_FIXED, file_.descriptor(),
                   static_cast<off_t>(mapping.offset)) == MAP_FAILED) {
          ++counters_.refused;  // no memory for a mapping: still its parent's
        }
      }
    }
  }
  restart();
  mutex_.unlock();
}

// Registrations and their memory stay as they are, but no page becomes private again.
void RegistrationMap::restart() {
  hold_.close();
  swap_.reset();
  for (Piece& piece : storage_) {
    piece.lost = true;
    piece.way = Way::copied;
  }
  pieces_.clear();
  file_.close();
  addresses_.close();
}

// The pieces of a RegistrationMap: made when a registration covers new pages, undone with the
// last that touches them. The map's lock is held.

bool RegistrationMap::can_share() {
  if (!file_ || !hold_) return false;
  if (until_count_ == 0) {
    crowded_ = addresses_.count() > most_mappings_;
    until_count_ = kCountEvery;
  }
  --until_count_;
  return !crowded_;
}

RegistrationMap::Piece* RegistrationMap::piece_over(std::uint64_t address,
                                                    std::uint64_t& next_begin) {
  auto next = pieces_.upper_bound(address);
  next_begin = next == pieces_.end() ? ~std::uint64_t{0} : next->first;
  if (next == pieces_.begin()) return nullptr;
  Piece* const before = std::prev(next)->second;
  return before->end > address ? before : nullptr;
}

// The program has not put other memory in its place.
bool RegistrationMap::still_ours(const Piece& piece) const {
  if (piece.way == Way::copied) return true;
  Mapping mapping;
  for (std::uint64_t at = piece.begin; at < piece.end; at = mapping.end) {
    if (!addresses_.covering(at, mapping) || !file_.owns(mapping) || !mapping.shared ||
        mapping.offset + (at - mapping.begin) != piece.offset + (at - piece.begin)) {
      return false;
    }
  }
  return true;
}

RegistrationMap::Piece* RegistrationMap::add(std::uint64_t begin, std::uint64_t end, Way way,
                                             std::uint64_t offset) {
  Piece& piece = storage_.emplace_back();
  piece.begin = begin;
  piece.end = end;
  piece.way = way;
  piece.offset = offset;
  piece.users = 1;
  piece.self = std::prev(storage_.end());
  pieces_[begin] = &piece;
  return &piece;
}

int RegistrationMap::cover(std::uint64_t address, std::uint64_t length, std::vector<Piece*>& out) {
  const std::uint64_t end = page_ceil(address + length);
  const std::uint64_t inner_begin = page_ceil(address);
  const std::uint64_t inner_end = page_floor(address + length);
  for (std::uint64_t at = page_floor(address); at < end;) {
    std::uint64_t next_begin = 0;
    if (Piece* const piece = piece_over(at, next_begin)) {
      if (still_ours(*piece)) {
        ++piece->users;
        out.push_back(piece);
        at = piece->end;
      } else {
        piece->lost = true;  // for its registrations
        pieces_.erase(piece->begin);
      }
      continue;
    }
    Mapping mapping;
    if (!addresses_.covering(at, mapping) || !mapping.readable) return EFAULT;
    // Neighbours of the same kind go together: taking pages back leaves such behind.
    Mapping after;
    while (fit(mapping) && mapping.end < std::min(next_begin, end) &&
           addresses_.covering(mapping.end, after) && fit(after) &&
           after.protection() == mapping.protection()) {
      mapping.end = after.end;
    }
    const std::uint64_t until = std::min({mapping.end, next_begin, end});
    if (const int error = cover_mapping(mapping, at, until, inner_begin, inner_end, out);
        error != 0) {
      return error;
    }
    at = until;
  }
  return 0;
}

// Pages [begin, end) of one mapping, which are not registered yet. Those within [inner_begin,
// inner_end) are registered as a whole.
int RegistrationMap::cover_mapping(const Mapping& mapping, std::uint64_t begin, std::uint64_t end,
                                   std::uint64_t inner_begin, std::uint64_t inner_end,
                                   std::vector<Piece*>& out) {
  std::uint64_t at = begin;
  while (at < end) {
    const std::uint64_t from = std::max(at, inner_begin);
    const std::uint64_t to = std::min({end, inner_end, from + SharedFile::kMostBytes});
    if (!fit(mapping) || mode_ == MemoryMode::copy || from >= to || holds_own_stack(from, to))
      break;
    std::uint64_t offset = 0;
    const std::uint64_t done = share_pages(mapping, from, to, offset);
    if (done == 0 && mode_ == MemoryMode::share) return EOPNOTSUPP;
    if (done == 0) break;
    if (at < from) out.push_back(add(at, from, Way::copied, 0));
    out.push_back(add(from, from + done, Way::shared, offset));
    at = from + done;
    if (done < to - from) break;
  }
  if (at < end) out.push_back(add(at, end, Way::copied, 0));
  return 0;
}

std::uint64_t RegistrationMap::share_pages(const Mapping& mapping, std::uint64_t begin,
                                           std::uint64_t end, std::uint64_t& offset) {
  if (!can_share() || !file_.take_slot(begin, offset)) return 0;
  const std::uint64_t done = swap_->share(begin, end - begin, offset, mapping.protection());
  if (done == 0) {
    file_.give_back(offset, end - begin);
    ++counters_.refused;
    return 0;
  }
  ++counters_.shares;
  counters_.shared_bytes += done;
  return done;
}

void RegistrationMap::drop(Piece& piece) {
  if (--piece.users != 0) return;
  if (!piece.lost) pieces_.erase(piece.begin);
  if (piece.way == Way::shared) take_back(piece);
  storage_.erase(piece.self);
}

// Makes private again what the program has left in place. Memory that it has moved elsewhere, or
// has let grow, stays in the file, and so does memory that a child process may be using.
void RegistrationMap::take_back(Piece& piece) {
  if (!file_ || !hold_ || !addresses_) {  // the program has closed them
    counters_.shared_bytes -= piece.end - piece.begin;
    ++counters_.kept;
    return;
  }
  std::uint64_t returned = 0;
  Mapping mapping;
  for (std::uint64_t at = piece.begin; at < piece.end && addresses_.at_or_after(at, mapping);
       at = mapping.end) {
    const std::uint64_t begin = std::max(at, mapping.begin);
    if (begin >= piece.end) break;
    const std::uint64_t offset = piece.offset + (begin - piece.begin);
    if (!file_.owns(mapping) || mapping.offset + (begin - mapping.begin) != offset) continue;
    const std::uint64_t bytes = std::min(mapping.end, piece.end) - begin;
    returned += swap_->take_back(begin, bytes, offset, mapping.protection());
  }
  const std::uint64_t bytes = piece.end - piece.begin;
  const std::uint64_t slot = SharedFile::slot_begin(piece.offset);
  counters_.shared_bytes -= bytes;
  const bool grown = addresses_.covering(piece.end, mapping) && in_slot(mapping, slot);
  const bool still_used = grown || (returned != bytes && mapped_anywhere(slot));
  if (still_used || piece.forked) {
    ++counters_.kept;
  } else {
    file_.give_back(piece.offset, bytes);
    ++counters_.returns;
  }
}

bool RegistrationMap::in_slot(const Mapping& mapping, std::uint64_t slot) const {
  return file_.owns(mapping) && SharedFile::slot_begin(mapping.offset) == slot;
}

bool RegistrationMap::mapped_anywhere(std::uint64_t slot) const {
  Mapping mapping;
  for (std::uint64_t at = 0; addresses_.at_or_after(at, mapping); at = mapping.end) {
    if (in_slot(mapping, slot)) return true;
  }
  return false;
}

}  // namespace paceline::verbs

#include "dataplane/verbs/memory/registration_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
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

// Whatever is shared stays shared: its pages belong to the program, which may be using them.
RegistrationMap::~RegistrationMap() = default;

void RegistrationMap::open_file() {
  if (!addresses_.open() || !file_.open()) file_.close();
}

int RegistrationMap::descriptor() {
  const std::lock_guard lock(mutex_);
  if (!file_ && mode_ != MemoryMode::copy) {
    begin_anew();
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
    // Nothing is known of this process: the service will find out what is there.
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

// The child keeps its memory as fork() makes it otherwise: its own. What it has not written yet may
// still change with the parent. It shares nothing of it with any service, and begins anew.
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
  begin_anew();
  mutex_.unlock();
}

// What is registered stays registered, and its memory what it is, but nothing of it is taken back.
void RegistrationMap::begin_anew() {
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

}  // namespace paceline::verbs

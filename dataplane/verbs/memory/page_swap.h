// Exchanges the memory under a range of addresses while the program runs: private pages for pages
// of the shared file with the same contents, and back. Writers are blocked meanwhile (page_hold.h);
// no write is lost. At most 2 MiB at a time, so that no writer is blocked for long.
//
// The thread that does it must not be held itself: it blocks its signals, and writes only to its
// own stack and, by system calls, to memory that is not held.
#pragma once

#include <cstdint>

#include "dataplane/verbs/memory/page_hold.h"

namespace paceline::verbs {

inline constexpr std::uint64_t kStretch = std::uint64_t{2} << 20U;

class PageSwap {
 public:
  // `hold`: with nullptr no writer is held, and writes meanwhile are lost (tests).
  PageSwap(const PageHold* hold, int file) : hold_(hold), file_(file) {}
  PageSwap(const PageSwap&) = delete;
  PageSwap& operator=(const PageSwap&) = delete;
  ~PageSwap();

  // Private pages [begin, begin + bytes) of one mapping become the file's at `offset`. Returns how
  // many bytes did, from `begin` on: fewer when the kernel refused.
  std::uint64_t share(std::uint64_t begin, std::uint64_t bytes, std::uint64_t offset,
                      int protection);
  // The file's pages become private ones again.
  std::uint64_t take_back(std::uint64_t begin, std::uint64_t bytes, std::uint64_t offset,
                          int protection);

 private:
  long share_stretch(std::uint64_t begin, std::uint64_t bytes, std::uint64_t offset,
                     int protection) const;
  long take_back_stretch(std::uint64_t begin, std::uint64_t bytes, std::uint64_t offset,
                         int protection, std::uint64_t staging) const;
  void keep_spare();

  const PageHold* hold_;
  int file_;
  // A spare mapping, given up when the process may have no more of them, so that it can still
  // deregister.
  void* spare_ = nullptr;
};

}  // namespace paceline::verbs

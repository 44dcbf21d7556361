// Reads the mappings of this process from the kernel: by PROCMAP_QUERY on /proc/self/maps (Linux
// 6.11, under a microsecond), or from the text of that file. Allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dataplane/attach/descriptors/own_descriptor.h"

namespace paceline::verbs {

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  // of `begin` in the file
  std::uint64_t inode = 0;   // 0: no file
  std::uint64_t device = 0;  // as st_dev
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;

  int protection() const;  // of PROT_*
};

class AddressMap {
 public:
  // False, with errno: /proc is not available. In a child process, open again.
  bool open();
  void close() { file_.reset(); }
  // Open, and not closed by the program: to be asked before the questions below.
  explicit operator bool() const { return static_cast<bool>(file_); }
  // The mapping that covers the address, or the next one above it. False: there is none.
  bool at_or_after(std::uint64_t address, Mapping& out) const;
  // The mapping that covers the address.
  bool covering(std::uint64_t address, Mapping& out) const {
    return at_or_after(address, out) && out.begin <= address;
  }
  std::size_t count() const;  // of all mappings

 private:
  bool query(std::uint64_t address, Mapping& out) const;
  bool search(std::uint64_t address, Mapping& out) const;
  attach::OwnDescriptor file_;
  bool by_text_ = false;
};

}  // namespace paceline::verbs

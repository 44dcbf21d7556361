// Hashes of runs, pinned in a text file beside the test: one run a line, sorted by name. A run is a
// sequence of frames with their times; a trail of partial hashes says where two runs part.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/units.h"

namespace paceline::test {

// Mixes eight bytes at a time. Its value is pinned, so it never changes.
class RunHash {
 public:
  void add(std::uint64_t value) {
    state_ = (state_ ^ value) * 0x9E37'79B9'7F4A'7C15ULL;
    state_ ^= state_ >> 29;
  }
  void add(std::span<const std::byte> bytes) {
    add(bytes.size());
    while (!bytes.empty()) {
      const std::size_t n = bytes.size() < 8 ? bytes.size() : 8;
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data(), n);
      add(word);
      bytes = bytes.subspan(n);
    }
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x243F'6A88'85A3'08D3ULL;
};

// All frames of a run, in the order in which they are shown.
class FrameTrail {
 public:
  void add(Picos at, std::initializer_list<std::uint64_t> facts, std::span<const std::byte> header,
           std::span<const std::byte> payload);

  std::uint64_t frames() const { return frames_; }
  std::uint64_t hash() const { return hash_.value(); }
  // Partial hashes after every so many frames, at most 16 of them, 16 bits each.
  std::string text() const;
  // Where a run whose text() was `pinned` parts from this one.
  std::string first_difference(const std::string& pinned, std::uint64_t pinned_frames) const;

 private:
  struct Mark {
    std::uint64_t hash;
    Picos at;
  };
  static constexpr std::uint64_t kStep = 64;

  RunHash hash_;
  std::uint64_t frames_ = 0;
  std::vector<Mark> marks_;  // after every kStep frames
};

// What is pinned of one run.
struct PinnedRun {
  std::uint64_t frames = 0;
  std::map<std::string, std::uint64_t> hashes;  // by what they are of
  std::string trail;

  std::string line(std::string_view name) const;
};

// Throws std::runtime_error when the file cannot be read or a line is none of ours.
std::map<std::string, PinnedRun> read_pinned(const std::string& path);
void write_pinned(const std::string& path, const std::string& heading,
                  const std::map<std::string, PinnedRun>& runs);

PinnedRun pin(const FrameTrail& trail, std::map<std::string, std::uint64_t> others);
// In which hashes `run` differs from what is pinned, and where its frames do first. Empty: in none.
std::string difference(const PinnedRun& pinned, const PinnedRun& run, const FrameTrail& trail);

}  // namespace paceline::test

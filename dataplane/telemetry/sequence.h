// How one thread writes and others read a block of the segment without waiting for each other: a
// sequence number that is odd while the block is written. The block begins with the number and one
// more 32-bit word; the rest are 64-bit words. All words are accessed as atomic ones, relaxed: what
// a reader gets in the middle of a writing is thrown away, but is never undefined.
//
// H.-J. Boehm, "Can seqlocks get along with programming language memory models?", MSPC 2012.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace paceline::telemetry {

namespace detail {

template <class Word>
void store_word(std::byte* at, Word value) {
  std::atomic_ref<Word>(*reinterpret_cast<Word*>(at)).store(value, std::memory_order_relaxed);
}

// Uses loads only. Pages without the right to write allow them if the word needs no lock.
template <class Word>
Word load_word(const std::byte* at) {
  static_assert(std::atomic_ref<Word>::is_always_lock_free);
  return std::atomic_ref<Word>(*reinterpret_cast<Word*>(const_cast<std::byte*>(at)))
      .load(std::memory_order_relaxed);
}

}  // namespace detail

// `bytes` is a multiple of 8; `from` need not be aligned.
inline void store_words(std::byte* to, const void* from, std::size_t bytes) {
  const auto* const source = static_cast<const std::byte*>(from);
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, source + i, sizeof(word));
    detail::store_word(to + i, word);
  }
}

inline void load_words(void* to, const std::byte* from, std::size_t bytes) {
  auto* const target = static_cast<std::byte*>(to);
  for (std::size_t i = 0; i < bytes; i += 8) {
    const auto word = detail::load_word<std::uint64_t>(from + i);
    std::memcpy(target + i, &word, sizeof(word));
  }
}

// Runs write() on the block at `block` (aligned to 8), whose sequence number it keeps. Only the one
// writer calls it.
template <class Write>
void write_guarded(std::byte* block, Write&& write) {
  const std::uint32_t before = detail::load_word<std::uint32_t>(block);
  const std::uint32_t odd = before | 1U;
  detail::store_word(block, odd);
  std::atomic_thread_fence(std::memory_order_release);
  write();
  std::atomic_ref<std::uint32_t>(*reinterpret_cast<std::uint32_t*>(block))
      .store(odd + 1, std::memory_order_release);
}

inline constexpr int kReadTries = 64;

// Runs read() until no write interfered; `sequence` is then the block's number. False: every try
// was disturbed, by permanent writing or because the writer died in the middle.
template <class Read>
bool read_guarded(const std::byte* block, std::uint32_t& sequence, Read&& read) {
  for (int i = 0; i < kReadTries; ++i) {
    sequence = std::atomic_ref<std::uint32_t>(
                   *reinterpret_cast<std::uint32_t*>(const_cast<std::byte*>(block)))
                   .load(std::memory_order_acquire);
    if ((sequence & 1U) != 0) continue;
    read();
    std::atomic_thread_fence(std::memory_order_acquire);
    if (detail::load_word<std::uint32_t>(block) == sequence) return true;
  }
  return false;
}

}  // namespace paceline::telemetry

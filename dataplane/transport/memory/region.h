// Memory regions. A region is plain memory, elided memory (in virtual time: only lengths and
// digests move), or memory behind a provider that may answer later. A worker never blocks on an
// application's memory: a provider that returns `pending` later calls Engine::memory_ready().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/transport/memory/region_keys.h"

namespace paceline {
class PacketPool;
}

namespace paceline::transport {

enum class MemoryResult : std::uint8_t {
  done,
  pending,  // the same call is repeated after Engine::memory_ready(qp)
  fault,    // out of bounds, no access, or the memory is gone
};

// Swap if `compare` is found (compare_swap), or add (vol. 1, 9.4.5).
struct AtomicOperation {
  bool compare_swap = false;
  std::uint64_t compare = 0;
  std::uint64_t swap_add = 0;

  constexpr std::uint64_t result(std::uint64_t original) const {
    if (!compare_swap) return original + swap_add;
    return original == compare ? swap_add : original;
  }
};

// Identifies the access of a call. An access to a list of segments consists of several calls, and
// is repeated from its first call if one of them was `pending`. A provider must distinguish a
// repeated call from a call of a later access to the same place. Each side of a queue pair has at
// most one access in progress per direction.
struct MemoryCaller {
  MemoryCaller(std::uint32_t qp, bool by_responder = false, std::uint32_t into = 0)
      : qp_number(qp), at(into), responder(by_responder) {}
  std::uint32_t qp_number;
  std::uint32_t at;  // grows from call to call of an access, and repeats with it
  bool responder;    // or the requester
};

// Memory that is not at hand. Offsets are relative to the region's base. Called on the engine's
// thread; must not block. After `pending`, the owner calls Engine::memory_ready(qp_number) once the
// repeated call will succeed.
class MemoryProvider {
 public:
  MemoryProvider() = default;
  MemoryProvider(const MemoryProvider&) = delete;
  MemoryProvider& operator=(const MemoryProvider&) = delete;
  virtual ~MemoryProvider() = default;
  virtual MemoryResult read(const MemoryCaller& caller, std::uint64_t offset,
                            std::span<std::byte> out) = 0;
  virtual MemoryResult write(const MemoryCaller& caller, std::uint64_t offset,
                             std::span<const std::byte> in) = 0;
  // The address of these bytes, if they are in memory and stay there until the region is removed;
  // nullptr: they have to be read.
  virtual const std::byte* at(std::uint64_t offset, std::uint64_t bytes) const;
  // Carries out an operation on the 8 bytes at `offset` (aligned, in the host's byte order), as a
  // whole and once, and returns what was there before. Memory without atomics keeps this default.
  virtual MemoryResult atomic(const MemoryCaller& caller, std::uint64_t offset,
                              const AtomicOperation& operation, std::uint64_t& original);
};

enum class RegionKind : std::uint8_t { none, plain, elided, provided };

namespace access {
inline constexpr std::uint8_t local_write = 1U << 0;
inline constexpr std::uint8_t remote_write = 1U << 1;
inline constexpr std::uint8_t remote_read = 1U << 2;
inline constexpr std::uint8_t remote_atomic = 1U << 3;
inline constexpr std::uint8_t remote_invalidate = 1U << 4;  // a SEND may revoke the region
// Every region has this right and no window does: only peers can use a window's key (vol. 1,
// 10.6.7).
inline constexpr std::uint8_t local_read = 1U << 5;
inline constexpr std::uint8_t window_bind = 1U << 6;  // windows may be bound to the region
inline constexpr std::uint8_t remote = remote_write | remote_read | remote_atomic;
}  // namespace access

struct Region {
  std::uint64_t base = 0;  // virtual address named by work requests and RETHs
  std::uint64_t length = 0;
  std::byte* memory = nullptr;         // plain
  MemoryProvider* provider = nullptr;  // provided
  std::uint32_t key = 0;               // local and remote key alike
  RegionKind kind = RegionKind::none;
  std::uint8_t access = 0;
  bool revoked = false;  // by a SEND with invalidate: no longer grants anything
  std::uint32_t pd = 0;  // protection domain
  std::uint32_t qp = 0;  // window of type 2: the only queue pair that may use it

  // All checks of a memory access (vol. 1, 10.6.3): domain, rights, bounds.
  bool grants(std::uint32_t domain, std::uint8_t needed, std::uint64_t address,
              std::uint64_t bytes) const {
    return pd == domain && (access & needed) == needed && !revoked && covers(address, bytes);
  }
  // The same for a peer of queue pair `number`.
  bool grants_peer(std::uint32_t number, std::uint32_t domain, std::uint8_t needed,
                   std::uint64_t address, std::uint64_t bytes) const {
    return grants(domain, needed, address, bytes) && (qp == 0 || qp == number);
  }
  bool covers(std::uint64_t address, std::uint64_t bytes) const {
    return address >= base && bytes <= length && address - base <= length - bytes;
  }
};

// The digest that stands for `length` elided bytes at `address`. Bytes that arrive at the wrong
// place, or with the wrong length, do not match.
constexpr std::uint64_t elided_digest(std::uint64_t address, std::uint64_t length) {
  std::uint64_t x = address * 0x9E37'79B9'7F4A'7C15ULL + length;
  x ^= x >> 29;
  return x * 0xBF58'476D'1CE4'E5B9ULL;
}

enum class WindowType : std::uint8_t {
  one,  // may be bound again at any time, by any queue pair of its domain
  two,  // bound only when free, then for that queue pair alone; can be invalidated
};

struct WindowBind {
  std::uint32_t key = 0;     // the new key: its upper 24 bits name the window
  std::uint32_t region = 0;  // key of the region that it is bound to
  std::uint64_t address = 0;
  std::uint64_t length = 0;  // 0: unbinds, type 1 only
  std::uint8_t access = 0;   // of access::remote
  std::uint32_t pd = 0;      // of the queue pair
  std::uint32_t qp = 0;      // its number
};

struct RegionWindows;

// The upper 24 bits of a key name a place, and the entry there must have exactly that key: a stale
// key is refused.
//
// Without a secret, keys are (index << 8 | generation), the same in every run. With a secret, they
// are drawn at random from all but 0, until one names a free place. An attacker who wants to hit a
// certain region has a chance of 1 in 2^32: 2^31 guesses on average, and each wrong guess ends a
// connection.
//
// The first region, which is mostly the only one, lies in the table itself.
class alignas(64) RegionTable {
 public:
  RegionTable();
  ~RegionTable();
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  // Keys are drawn from now on. Call it before the first region. Tables with the same secret that
  // get the same regions in the same order give the same keys.
  void draw_keys_from(const KeySecret& secret);
  // From now on, every call that removes a region or a window, or its rights, ends the loans of
  // this pool: payloads may be in flight from there. The pool must outlive all such calls.
  void end_loans_of(PacketPool& pool) { pool_ = &pool; }

  // `pd`: the protection domain, a number that the owner of the engine assigns. Queue pairs reach
  // only regions of their own domain.
  std::uint32_t add_plain(std::uint64_t base, std::span<std::byte> memory, std::uint8_t access,
                          std::uint32_t pd = 0);
  std::uint32_t add_elided(std::uint64_t base, std::uint64_t length, std::uint8_t access,
                           std::uint32_t pd = 0);
  std::uint32_t add_provided(std::uint64_t base, std::uint64_t length, MemoryProvider& provider,
                             std::uint8_t access, std::uint32_t pd = 0);
  // False when the key names no region, or windows are bound to it.
  bool remove(std::uint32_t key);
  // Gives the region other rights and another domain; it keeps its key, and a revoked region grants
  // again. False as above.
  bool change(std::uint32_t key, std::uint8_t access, std::uint32_t pd);
  // Revokes a region until it is removed, or a window until it is bound again. False when the key
  // names nothing of this domain (for a bound window: of this queue pair), something without the
  // `needed` rights (0 for its owner, remote_invalidate for a peer), or a window of type 1.
  bool invalidate(std::uint32_t key, std::uint32_t pd, std::uint8_t needed, std::uint32_t qp = 0);

  // Windows. Returns the first key; it grants nothing before the window is bound.
  std::uint32_t add_window(WindowType type, std::uint32_t pd);
  // `key`: any that the window has had. False: there is no such window.
  bool remove_window(std::uint32_t key);
  // False, with nothing changed: vol. 1, 10.6.7.2 does not allow it.
  bool bind(const WindowBind& bind);

  // nullptr when the key is unknown or stale. Valid until the next add or remove.
  const Region* find(std::uint32_t key) const {
    const std::uint32_t index = place(key);
    if (index >= size_) return nullptr;
    const Region& region = data_[index];
    return region.key == key && region.kind != RegionKind::none ? &region : nullptr;
  }

 private:
  std::uint32_t place(std::uint32_t key) const { return (key >> 8) & mask_; }
  Region& slot(std::uint32_t& key);
  Region& drawn_slot(std::uint32_t& key);
  void grow();
  std::uint32_t fill(const Region& content);
  void vacate(std::uint32_t index);
  RegionWindows& windows();
  bool has_windows(std::uint32_t key) const;
  void unbind(Region& region, std::uint32_t window);
  void end_loans();

  Region* data_ = &first_;
  std::uint32_t size_ = 0;
  std::uint32_t mask_ = ~0U;  // with a secret: size_ - 1
  Region first_;
  std::vector<Region> regions_;  // all of them, once there are two
  std::vector<std::uint32_t> free_;
  std::optional<KeySecret> secret_;
  std::uint64_t draws_ = 0;
  std::uint32_t used_ = 0;                  // with a secret: places that are taken
  std::unique_ptr<RegionWindows> windows_;  // once there are any, or may be
  PacketPool* pool_ = nullptr;
};

}  // namespace paceline::transport

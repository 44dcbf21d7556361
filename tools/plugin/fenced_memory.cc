#include "tools/plugin/fenced_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace paceline::tools {
namespace {

constexpr std::size_t kFence = 1U << 16U;  // bytes before and behind
constexpr std::size_t kAlign = 16;
constexpr std::byte kFiller{0xA5};

std::size_t whole_units(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

Fenced::Fenced(const char* name, std::size_t bytes, bool at_end)
    : name_(name),
      bytes_(bytes),
      room_(whole_units(std::max<std::size_t>(bytes, 1), page_bytes())) {
  void* const map = ::mmap(nullptr, room_ + 2 * kFence, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  map_ = static_cast<std::byte*>(map);
  if (::mprotect(map_ + kFence, room_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  std::memset(map_ + kFence, static_cast<int>(kFiller), room_);
  data_ = map_ + kFence + (at_end ? room_ - whole_units(bytes, kAlign) : 0);
  std::memset(data_, 0, bytes);
}

Fenced::~Fenced() { ::munmap(map_, room_ + 2 * kFence); }

void Fenced::writable(bool yes) const {
  ::mprotect(map_ + kFence, room_, yes ? PROT_READ | PROT_WRITE : PROT_READ);
}

std::uintptr_t Fenced::damage() const {
  const auto wrong = [](std::byte b) { return b != kFiller; };
  const std::byte* const end = map_ + kFence + room_;
  const std::byte* at = std::find_if<const std::byte*>(map_ + kFence, data_, wrong);
  if (at == data_) at = std::find_if<const std::byte*>(data_ + bytes_, end, wrong);
  return at == end ? 0 : reinterpret_cast<std::uintptr_t>(at);
}

bool Fenced::has(std::uintptr_t address) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(map_);
  return address >= begin && address < begin + room_ + 2 * kFence;
}

std::string Fenced::place(std::uintptr_t address) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(data_);
  if (address < begin) return fmt::format("{} bytes before {}", begin - address, name_);
  if (address < begin + bytes_) return fmt::format("{}, which is only to be read", name_);
  return fmt::format("{} bytes behind the end of {}", address - begin - bytes_, name_);
}

}  // namespace paceline::tools

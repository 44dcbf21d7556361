// Memory between pages that must not be touched: at the end of a page or at its beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace paceline::tools {

// A number of bytes of one kind, with fences.
class Fenced {
 public:
  Fenced(const char* name, std::size_t bytes, bool at_end);
  ~Fenced();
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  void writable(bool yes) const;
  // The first byte beside it, on the same page, that has changed; 0: none.
  std::uintptr_t damage() const;
  bool has(std::uintptr_t address) const;
  std::string place(std::uintptr_t address) const;

 private:
  const char* name_;
  std::size_t bytes_;
  std::size_t room_;
  std::byte* map_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace paceline::tools

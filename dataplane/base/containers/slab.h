// A fixed number of objects side by side, constructed one after the other and never moved: what a
// vector cannot hold when they refer to one another. Destroyed together, the last one first.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory_resource>
#include <new>
#include <utility>

namespace paceline {

template <class T>
class Slab {
 public:
  // Room for `capacity` objects, from `memory`, which must outlive the slab.
  Slab(std::size_t capacity, std::pmr::memory_resource& memory)
      : memory_(memory),
        capacity_(capacity),
        objects_(static_cast<T*>(memory.allocate(capacity * sizeof(T), alignof(T)))) {}
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab() {
    while (size_ != 0) objects_[--size_].~T();
    memory_.deallocate(objects_, capacity_ * sizeof(T), alignof(T));
  }

  // Requires size() < capacity().
  template <class... Args>
  T& emplace(Args&&... args) {
    assert(size_ < capacity_);
    T* const object = ::new (static_cast<void*>(objects_ + size_)) T(std::forward<Args>(args)...);
    ++size_;
    return *object;
  }

  T& operator[](std::size_t index) { return objects_[index]; }
  const T& operator[](std::size_t index) const { return objects_[index]; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  T* begin() { return objects_; }
  T* end() { return objects_ + size_; }
  const T* begin() const { return objects_; }
  const T* end() const { return objects_ + size_; }

 private:
  std::pmr::memory_resource& memory_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  T* objects_;
};

}  // namespace paceline

// How functions of libibverbs report: an errno as the value or beside a null pointer, and never an
// exception, which would pass through another program's code.
#pragma once

#include <cerrno>
#include <cstddef>
#include <utility>

namespace paceline::verbs {

// For functions that return 0 or the value of errno.
inline int result(int error) noexcept {
  if (error != 0) errno = error;
  return error;
}

// For functions that return a pointer.
inline std::nullptr_t refuse(int error) noexcept {
  errno = error;
  return nullptr;
}

// Runs `work`; the only exceptions that the library meets are those of the allocator.
template <class Work, class Value>
auto guarded(Value failed, Work&& work) noexcept -> decltype(work()) {
  try {
    return std::forward<Work>(work)();
  } catch (...) {
    errno = ENOMEM;
    return failed;
  }
}

}  // namespace paceline::verbs

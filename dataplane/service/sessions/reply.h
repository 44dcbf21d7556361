// The reply to a request of a program.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace paceline::service {

// 0, or an errno and why. EPROTO ends the connection.
struct Status {
  int error = 0;
  std::string why;
};

// The reply. The session keeps ownership of the descriptors.
struct Reply {
  std::vector<std::byte> body;
  std::vector<int> descriptors;
  // For work whose duration the program decides: `aside` runs on another thread and owns what it
  // uses; then `then` makes the reply. If `aside` throws, the session ends.
  std::function<void()> aside;
  std::function<Status(Reply&)> then;

  // Ensures that a put() of so many bytes and one descriptor does not allocate.
  void make_room(std::size_t bytes) {
    body.reserve(body.size() + bytes);
    descriptors.reserve(1);
  }
  template <class T>
  void put(const T& part) {
    const auto* const from = reinterpret_cast<const std::byte*>(&part);
    body.insert(body.end(), from, from + sizeof(T));
  }
};

}  // namespace paceline::service

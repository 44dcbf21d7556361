// What a request of a program is answered with.
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

// What goes back. The descriptors stay the session's.
struct Reply {
  std::vector<std::byte> body;
  std::vector<int> descriptors;
  // Where the program decides how long something takes, the answer waits: `aside` runs on another
  // thread, owns what it uses and does not throw; `then` says what comes of it.
  std::function<void()> aside;
  std::function<Status(Reply&)> then;

  template <class T>
  void put(const T& part) {
    const auto* const from = reinterpret_cast<const std::byte*>(&part);
    body.insert(body.end(), from, from + sizeof(T));
  }
};

}  // namespace paceline::service

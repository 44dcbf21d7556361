// Messages over a stream socket: JSON objects, one a line.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace paceline::rank {

class JsonLines {
 public:
  explicit JsonLines(int descriptor) : descriptor_(descriptor) {}  // owns it
  ~JsonLines();
  JsonLines(JsonLines&& other) noexcept;
  JsonLines& operator=(JsonLines&&) = delete;

  int descriptor() const { return descriptor_; }

  // False: the other end is gone.
  bool send(const nlohmann::json& message);

  // Takes in what has arrived, without waiting. False: the other end is gone, or sends invalid
  // JSON.
  bool receive();
  // The next of the messages taken in.
  std::optional<nlohmann::json> next();

 private:
  static constexpr std::size_t kMostBytes = 1 << 20;  // of a message

  int descriptor_;
  std::string taken_in_;
};

}  // namespace paceline::rank

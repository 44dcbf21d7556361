// The SEND or WRITE that is arriving, and where its next byte goes.
#pragma once

#include <cstdint>

namespace paceline::transport {

class IncomingMessage {
 public:
  bool open() const { return open_; }  // its first packet has come, its last has not
  bool is_write() const { return is_write_; }
  std::uint32_t key() const { return key_; }  // of the region that it goes to
  std::uint64_t address() const { return address_; }
  std::uint64_t received() const { return received_; }    // bytes placed so far
  std::uint64_t remaining() const { return remaining_; }  // WRITE: announced and not yet placed

  void begin_write(std::uint32_t key, std::uint64_t address, std::uint64_t bytes) {
    *this = IncomingMessage(key, address, bytes, true);
  }
  void begin_send(std::uint32_t key, std::uint64_t address) {
    *this = IncomingMessage(key, address, 0, false);
  }
  void placed(std::uint32_t bytes) {
    address_ += bytes;
    received_ += bytes;
    if (is_write_) remaining_ -= bytes;
  }
  // The message is complete, or dropped. Its figures can still be read.
  void close() { open_ = false; }

  IncomingMessage() = default;

 private:
  IncomingMessage(std::uint32_t key, std::uint64_t address, std::uint64_t bytes, bool is_write)
      : address_(address), remaining_(bytes), key_(key), open_(true), is_write_(is_write) {}

  std::uint64_t address_ = 0;
  std::uint64_t remaining_ = 0;
  std::uint64_t received_ = 0;
  std::uint32_t key_ = 0;
  bool open_ = false;
  bool is_write_ = false;
};

}  // namespace paceline::transport

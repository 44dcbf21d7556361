// Fields of a message in the wire format of Protocol Buffers, one after the other. Reads nothing
// beyond its bytes; errors are reported with the byte of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace paceline::workload {

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct ProtobufField {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;        // of all but bytes
  std::string_view bytes;         // of bytes
  std::uint64_t offset = 0;       // in the file, where the field begins
  std::uint64_t data_offset = 0;  // in the file, where its value or bytes begin
};

struct ProtobufError {
  std::uint64_t offset = 0;
  std::string what;  // empty: none
};

class ProtobufReader {
 public:
  // `offset`: of the bytes in the file.
  explicit ProtobufReader(std::string_view bytes, std::uint64_t offset = 0)
      : bytes_(bytes), offset_(offset) {}

  // The next field; false at the end, or where the bytes are wrong.
  bool next(ProtobufField& field);
  // A number or a length and as many bytes, without a key before them.
  bool varint(std::uint64_t& value);
  bool delimited(ProtobufField& field);

  bool at_end() const { return at_ == bytes_.size(); }
  const ProtobufError& error() const { return error_; }

 private:
  bool fixed(std::size_t size, std::uint64_t& value);
  bool fail(std::size_t at, std::string what);

  std::string_view bytes_;
  std::uint64_t offset_;
  std::size_t at_ = 0;
  ProtobufError error_;
};

}  // namespace paceline::workload

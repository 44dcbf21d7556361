#include "tools/workload/jobs/chakra/protobuf_reader.h"

#include <fmt/format.h>

namespace paceline::workload {

bool ProtobufReader::fail(std::size_t at, std::string what) {
  error_ = {offset_ + at, std::move(what)};
  return false;
}

bool ProtobufReader::varint(std::uint64_t& value) {
  constexpr std::size_t kLongest = 10;
  value = 0;
  for (std::size_t i = 0; i < kLongest; ++i) {
    if (at_ + i == bytes_.size()) return fail(at_, "a number is cut off");
    const auto byte = static_cast<std::uint8_t>(bytes_[at_ + i]);
    if (i + 1 == kLongest && byte > 1) break;
    value |= std::uint64_t{byte & 0x7FU} << (7 * i);
    if ((byte & 0x80U) == 0) {
      at_ += i + 1;
      return true;
    }
  }
  return fail(at_, "a number of more than 64 bits");
}

bool ProtobufReader::fixed(std::size_t size, std::uint64_t& value) {
  if (bytes_.size() - at_ < size) return fail(at_, "a number is cut off");
  value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value |= std::uint64_t{static_cast<std::uint8_t>(bytes_[at_ + i])} << (8 * i);
  }
  at_ += size;
  return true;
}

bool ProtobufReader::delimited(ProtobufField& field) {
  const std::size_t begin = at_;
  std::uint64_t length = 0;
  if (!varint(length)) return false;
  if (length > bytes_.size() - at_) {
    return fail(begin, fmt::format("length {}: {} bytes are left", length, bytes_.size() - at_));
  }
  field.data_offset = offset_ + at_;
  field.bytes = bytes_.substr(at_, length);
  at_ += length;
  return true;
}

bool ProtobufReader::next(ProtobufField& field) {
  if (at_end() || !error_.what.empty()) return false;
  const std::size_t begin = at_;
  std::uint64_t key = 0;
  if (!varint(key)) return false;
  constexpr std::uint64_t kMostFields = (1U << 29) - 1;
  if (key >> 3 == 0 || key >> 3 > kMostFields) {
    return fail(begin, fmt::format("field {}: expected 1 to {}", key >> 3, kMostFields));
  }
  field = {};
  field.offset = offset_ + begin;
  field.data_offset = offset_ + at_;
  field.number = static_cast<std::uint32_t>(key >> 3);
  field.type = static_cast<WireType>(key & 7);
  switch (field.type) {
    case WireType::varint:
      return varint(field.value);
    case WireType::fixed64:
      return fixed(8, field.value);
    case WireType::bytes:
      return delimited(field);
    case WireType::fixed32:
      return fixed(4, field.value);
  }
  return fail(begin, fmt::format("wire type {}: expected 0, 1, 2 or 5", key & 7));
}

}  // namespace paceline::workload

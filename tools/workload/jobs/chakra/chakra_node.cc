#include "tools/workload/jobs/chakra/chakra_node.h"

#include <fmt/format.h>

namespace paceline::workload {

namespace {

// Fields of a Node and of an AttributeProto.
enum NodeField : std::uint32_t {
  kNodeId = 1,
  kNodeName = 2,
  kNodeType = 3,
  kNodeControl = 4,
  kNodeData = 5,
  kNodeDuration = 7,
  kNodeAttribute = 10,
};
enum AttributeField : std::uint32_t {
  kAttributeName = 1,
  kInt32 = 7,
  kInt64 = 9,
  kUint32 = 11,
  kUint64 = 13,
  kSint32 = 15,
  kSint64 = 17,
  kFixed32 = 19,
  kFixed64 = 21,
  kSfixed32 = 23,
  kSfixed64 = 25,
  kBool = 27,
  kBools = 28,
  kString = 29,
};

WireType wire_type_of(std::uint32_t kind) {
  if (kind == kString || kind == kBools) return WireType::bytes;
  if (kind == kFixed32 || kind == kSfixed32) return WireType::fixed32;
  return kind == kFixed64 || kind == kSfixed64 ? WireType::fixed64 : WireType::varint;
}

class NodeReader {
 public:
  NodeReader(ChakraNode& node, ProtobufError& error) : node_(node), error_(error) {}

  bool read(const ProtobufField& message) {
    node_ = {};
    node_.offset = message.data_offset;
    ProtobufReader reader(message.bytes, message.data_offset);
    ProtobufField field;
    while (reader.next(field)) {
      if (!node_field(field)) return false;
    }
    return ended(reader);
  }

 private:
  bool ended(const ProtobufReader& reader) {
    if (!reader.error().what.empty()) error_ = reader.error();
    return reader.error().what.empty();
  }

  bool fail(const ProtobufField& field, std::string what) {
    error_ = {field.offset, std::move(what)};
    return false;
  }

  bool is(const ProtobufField& field, WireType type) {
    if (field.type == type) return true;
    return fail(field, fmt::format("field {} has wire type {}: expected {}", field.number,
                                   static_cast<unsigned>(field.type), static_cast<unsigned>(type)));
  }

  bool node_field(const ProtobufField& field) {
    switch (field.number) {
      case kNodeId:
        node_.id = field.value;
        return is(field, WireType::varint);
      case kNodeType:
        node_.type = field.value;
        return is(field, WireType::varint);
      case kNodeDuration:
        node_.duration_us = field.value;
        return is(field, WireType::varint);
      case kNodeName:
        node_.name = field.bytes;
        return is(field, WireType::bytes);
      case kNodeControl:
      case kNodeData:
        return dependencies(field);
      case kNodeAttribute:
        return is(field, WireType::bytes) && attribute(field);
      default:
        return true;
    }
  }

  // One by one, or packed.
  bool dependencies(const ProtobufField& field) {
    if (field.type == WireType::varint) {
      node_.waits.push_back(field.value);
      return true;
    }
    if (!is(field, WireType::bytes)) return false;
    ProtobufReader reader(field.bytes, field.data_offset);
    std::uint64_t id = 0;
    while (!reader.at_end() && reader.varint(id)) node_.waits.push_back(id);
    return ended(reader);
  }

  bool attribute(const ProtobufField& message) {
    ProtobufReader reader(message.bytes, message.data_offset);
    ProtobufField field, value;
    std::string_view name;
    while (reader.next(field)) {
      if (field.number == kAttributeName) {
        if (!is(field, WireType::bytes)) return false;
        name = field.bytes;
      } else if (field.number >= 3 && field.number <= 32) {
        value = field;
      }
    }
    return ended(reader) && named(name, value);
  }

  bool named(std::string_view name, const ProtobufField& value) {
    if (name == "comm_type") return integer(name, value, node_.comm_type);
    if (name == "comm_size") return integer(name, value, node_.comm_size);
    if (name == "comm_src") return integer(name, value, node_.comm_src);
    if (name == "comm_dst") return integer(name, value, node_.comm_dst);
    if (name == "comm_tag") {
      std::optional<std::int64_t> tag;
      if (!integer(name, value, tag)) return false;
      node_.comm_tag = *tag;
    } else if (name == "num_ops") {
      node_.counts_operations = true;
    } else if (name == "pg_name") {
      return group(name, value);
    } else if (name == "involved_dim") {
      return dimensions(name, value);
    }
    return true;
  }

  // Accepts any of the integer kinds.
  bool integer(std::string_view name, const ProtobufField& field,
               std::optional<std::int64_t>& out) {
    const bool kind = field.number >= kInt32 && field.number <= kBool && field.number % 2 == 1;
    if (!kind) {
      return fail(field, fmt::format("attribute {}: expected an integer", name));
    }
    if (!is(field, wire_type_of(field.number))) return false;
    std::uint64_t value = field.value;
    if (field.number == kSint32 || field.number == kSint64) {
      value = value >> 1 ^ (0 - (value & 1));
    } else if (field.number == kSfixed32) {
      value = static_cast<std::uint64_t>(static_cast<std::int32_t>(field.value));
    } else if ((field.number == kUint64 || field.number == kFixed64) && value >> 63 != 0) {
      return fail(field, fmt::format("attribute {}: expected less than 2^63", name));
    }
    out = static_cast<std::int64_t>(value);
    return true;
  }

  bool group(std::string_view name, const ProtobufField& field) {
    if (field.number == kString) {
      if (!is(field, WireType::bytes)) return false;
      node_.group = std::string(field.bytes);
      return true;
    }
    std::optional<std::int64_t> number;
    if (!integer(name, field, number)) return false;
    node_.group = std::to_string(*number);
    return true;
  }

  bool dimensions(std::string_view name, const ProtobufField& field) {
    if (field.number != kBools || field.type != WireType::bytes) {
      return fail(field, fmt::format("attribute {}: expected a list of bool", name));
    }
    ProtobufReader list(field.bytes, field.data_offset);
    ProtobufField value;
    while (list.next(value)) {
      if (value.type == WireType::varint) {
        node_.some_dimensions |= value.value == 0;
      } else {
        node_.some_dimensions |= value.bytes.find('\0') != std::string_view::npos;
      }
    }
    return ended(list);
  }

  ChakraNode& node_;
  ProtobufError& error_;
};

}  // namespace

bool read_chakra_node(const ProtobufField& message, ChakraNode& node, ProtobufError& error) {
  return NodeReader(node, error).read(message);
}

}  // namespace paceline::workload

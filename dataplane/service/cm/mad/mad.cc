#include "dataplane/service/cm/mad/mad.h"

#include <cstring>

#include "dataplane/wire/bytes/endian.h"

namespace paceline::service::cm {

namespace {

using wire::load_be16;
using wire::load_be24;
using wire::load_be32;
using wire::load_be64;
using wire::load_u8;

// 13.4.2: base version, class, class version and method of every message here.
constexpr std::uint32_t kFirstWord = 0x01'07'02'03;
// 13.4.5.
constexpr std::uint8_t kGet = 0x01;
constexpr std::uint8_t kSet = 0x02;
constexpr std::uint8_t kGetResp = 0x81;
constexpr std::uint16_t kNotSupported = 3U << 2U;
constexpr std::size_t kData = 24;  // behind the common header

// The functions below list the fields of each attribute once, for writing and for reading. `f` has
// a function for each kind of field, which takes the offset from the end of the common header.
template <class Fields, class M>
void ids(Fields& f, M& m) {
  f.u32(0, m.local_id);
  f.u32(4, m.remote_id);
}

// 12.6.5. The alternate path stays zero.
template <class Fields, class M>
void req(Fields& f, M& m) {
  f.u32(0, m.local_id);
  f.u64(8, m.service_id);
  f.u64(16, m.guid);
  f.u32(28, m.qkey);
  f.u24(32, m.qp_number);
  f.u8(35, m.responder_resources);
  f.u8(39, m.initiator_depth);
  f.bits(43, 3, 5, m.remote_response_timeout);
  f.bits(43, 1, 2, m.service_type);
  f.bits(43, 0, 1, m.flow_control);
  f.u24(44, m.starting_psn);
  f.bits(47, 3, 5, m.local_response_timeout);
  f.bits(47, 0, 3, m.retry_count);
  f.u16(48, m.partition_key);
  f.bits(50, 4, 4, m.path_mtu);
  f.bits(50, 0, 3, m.rnr_retry_count);
  f.bits(51, 4, 4, m.most_retries);
  f.bits(51, 3, 1, m.shared_receives);
  f.u16(52, m.path.local_lid);
  f.u16(54, m.path.remote_lid);
  f.gid(56, m.path.local);
  f.gid(72, m.path.remote);
  f.flow_label(88, m.path.flow_label);
  f.bits(91, 0, 6, m.path.packet_rate);
  f.u8(92, m.path.traffic_class);
  f.u8(93, m.path.hop_limit);
  f.bits(94, 4, 4, m.path.service_level);
  f.bits(95, 3, 5, m.path.ack_timeout);
  f.data(140, m);
}

template <class Fields, class M>
void fields(Fields& f, M& m) {
  switch (m.attribute) {
    case Attribute::req:
      return req(f, m);
    case Attribute::mra:  // 12.6.6
      ids(f, m);
      f.bits(8, 6, 2, m.about);
      f.bits(9, 3, 5, m.service_timeout);
      return f.data(10, m);
    case Attribute::rej:  // 12.6.7
      ids(f, m);
      f.bits(8, 6, 2, m.about);
      f.u16(10, m.reason);
      return f.data(84, m);
    case Attribute::rep:  // 12.6.8
      ids(f, m);
      f.u32(8, m.qkey);
      f.u24(12, m.qp_number);
      f.u24(20, m.starting_psn);
      f.u8(24, m.responder_resources);
      f.u8(25, m.initiator_depth);
      f.bits(26, 3, 5, m.target_ack_delay);
      f.bits(26, 0, 1, m.flow_control);
      f.bits(27, 5, 3, m.rnr_retry_count);
      f.bits(27, 4, 1, m.shared_receives);
      f.u64(28, m.guid);
      return f.data(36, m);
    case Attribute::rtu:   // 12.6.9
    case Attribute::drep:  // 12.6.11
      ids(f, m);
      return f.data(8, m);
    case Attribute::dreq:  // 12.6.10
      ids(f, m);
      f.u24(8, m.qp_number);
      return f.data(12, m);
    case Attribute::sidr_req:  // 12.11.1
      f.u32(0, m.local_id);
      f.u16(4, m.partition_key);
      f.u64(8, m.service_id);
      return f.data(16, m);
    case Attribute::sidr_rep:  // 12.11.2
      f.u32(0, m.local_id);
      f.u8(4, m.status);
      f.u24(8, m.qp_number);
      f.u64(12, m.service_id);
      f.u32(20, m.qkey);
      return f.data(96, m);
  }
}

struct Writer {
  std::byte* at;
  void u8(std::size_t o, std::uint8_t v) { wire::store_u8(at + o, v); }
  void u16(std::size_t o, std::uint16_t v) { wire::store_be16(at + o, v); }
  void u24(std::size_t o, std::uint32_t v) {
    wire::store_be16(at + o, static_cast<std::uint16_t>(v >> 8));
    wire::store_u8(at + o + 2, static_cast<std::uint8_t>(v));
  }
  void u32(std::size_t o, std::uint32_t v) { wire::store_be32(at + o, v); }
  void u64(std::size_t o, std::uint64_t v) { wire::store_be64(at + o, v); }
  void gid(std::size_t o, const wire::Gid& v) { std::memcpy(at + o, v.bytes.data(), 16); }
  void flow_label(std::size_t o, std::uint32_t v) { u24(o, v << 4); }
  template <class Value>
  void bits(std::size_t o, unsigned shift, unsigned width, Value v) {
    const unsigned cut = static_cast<unsigned>(v) & ((1U << width) - 1);
    at[o] |= static_cast<std::byte>(cut << shift);
  }
  void data(std::size_t o, const Mad& m) {
    std::memcpy(at + o, m.private_data.data(), private_bytes(m.attribute));
  }
};

struct Reader {
  const std::byte* at;
  void u8(std::size_t o, std::uint8_t& v) { v = load_u8(at + o); }
  void u16(std::size_t o, std::uint16_t& v) { v = load_be16(at + o); }
  void u24(std::size_t o, std::uint32_t& v) { v = load_be24(at + o); }
  void u32(std::size_t o, std::uint32_t& v) { v = load_be32(at + o); }
  void u64(std::size_t o, std::uint64_t& v) { v = load_be64(at + o); }
  void gid(std::size_t o, wire::Gid& v) { v = wire::Gid::load_v6(at + o); }
  void flow_label(std::size_t o, std::uint32_t& v) { v = load_be24(at + o) >> 4; }
  template <class Value>
  void bits(std::size_t o, unsigned shift, unsigned width, Value& v) {
    v = static_cast<Value>(load_u8(at + o) >> shift & ((1U << width) - 1));
  }
  void data(std::size_t o, Mad& m) {
    std::memcpy(m.private_data.data(), at + o, private_bytes(m.attribute));
  }
};

static_assert(kData + 140 + private_bytes(Attribute::req) == kMadBytes);
static_assert(kData + 10 + private_bytes(Attribute::mra) == kMadBytes);
static_assert(kData + 84 + private_bytes(Attribute::rej) == kMadBytes);
static_assert(kData + 36 + private_bytes(Attribute::rep) == kMadBytes);
static_assert(kData + 8 + private_bytes(Attribute::rtu) == kMadBytes);
static_assert(kData + 12 + private_bytes(Attribute::dreq) == kMadBytes);
static_assert(kData + 16 + private_bytes(Attribute::sidr_req) == kMadBytes);
static_assert(kData + 96 + private_bytes(Attribute::sidr_rep) == kMadBytes);

}  // namespace

MadBytes build_mad(const Mad& mad) {
  MadBytes out{};
  wire::store_be32(out.data(), kFirstWord);
  wire::store_be64(out.data() + 8, mad.transaction);
  wire::store_be16(out.data() + 16, static_cast<std::uint16_t>(mad.attribute));
  Writer writer{out.data() + kData};
  fields(writer, mad);
  return out;
}

std::optional<Mad> parse_mad(std::span<const std::byte> bytes) {
  if (bytes.size() != kMadBytes || load_be32(bytes.data()) != kFirstWord) return std::nullopt;
  Mad mad;
  mad.attribute = static_cast<Attribute>(load_be16(bytes.data() + 16));
  if (private_bytes(mad.attribute) == 0) return std::nullopt;
  mad.transaction = load_be64(bytes.data() + 8);
  Reader reader{bytes.data() + kData};
  fields(reader, mad);
  return mad;
}

std::optional<MadBytes> answer_to_query(std::span<const std::byte> bytes) {
  if (bytes.size() != kMadBytes || load_u8(bytes.data()) != 1) return std::nullopt;
  const std::uint8_t method = load_u8(bytes.data() + 3);
  if (method != kGet && method != kSet) return std::nullopt;
  MadBytes out{};
  std::memcpy(out.data(), bytes.data(), kMadBytes);
  wire::store_u8(out.data() + 3, kGetResp);
  wire::store_be16(out.data() + 4, kNotSupported);
  return out;
}

}  // namespace paceline::service::cm

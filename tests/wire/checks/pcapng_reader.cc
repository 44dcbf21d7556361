#include "tests/wire/checks/pcapng_reader.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>

#include "dataplane/wire/host/pause_frame.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::test {

namespace {

using Bytes = std::span<const std::byte>;

class Reader {
 public:
  Reader(Bytes bytes, const std::string& name) : rest_(bytes), name_(name) {}

  PcapngFile read() {
    if (rest_.empty()) fail("empty");
    while (!rest_.empty()) block();
    return std::move(file_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(name_ + ": block " + std::to_string(blocks_) + ": " + what);
  }
  void need(bool ok, const char* what) const {
    if (!ok) fail(what);
  }
  static std::uint32_t u32(Bytes b, std::size_t at) { return wire::load_le32(b.data() + at); }
  static std::uint16_t u16(Bytes b, std::size_t at) {
    return static_cast<std::uint16_t>(wire::load_u8(b.data() + at) |
                                      wire::load_u8(b.data() + at + 1) << 8);
  }
  static std::uint64_t u64(Bytes b, std::size_t at) {
    return std::uint64_t{u32(b, at + 4)} << 32 | u32(b, at);
  }

  void block() {
    ++blocks_;
    need(rest_.size() >= 12, "shorter than a block");
    const std::uint32_t length = u32(rest_, 4);
    need(length >= 12 && length % 4 == 0 && length <= rest_.size(), "its length");
    need(u32(rest_, length - 4) == length, "its length is not repeated at its end");
    const Bytes body = rest_.subspan(8, length - 12);
    const std::uint32_t type = u32(rest_, 0);
    rest_ = rest_.subspan(length);
    need((blocks_ == 1) == (type == 0x0A0D0D0A), "one section header, at the beginning");
    switch (type) {
      case 0x0A0D0D0A:
        return section(body);
      case 1:
        return interface(body);
      case 5:
        return statistics(body);
      case 6:
        return packet(body);
      default:
        fail("unknown type");
    }
  }

  // Calls use(code, value) for every option.
  template <class Use>
  void options(Bytes rest, Use&& use) const {
    if (rest.empty()) return;
    for (;;) {
      need(rest.size() >= 4, "options without an end");
      const std::uint16_t code = u16(rest, 0);
      const std::uint16_t length = u16(rest, 2);
      const std::size_t padded = (length + 3U) & ~3U;
      need(rest.size() >= 4 + padded, "an option beyond its block");
      if (code == 0) {
        need(length == 0 && rest.size() == 4, "something behind the end of options");
        return;
      }
      use(code, rest.subspan(4, length));
      for (std::size_t i = length; i < padded; ++i) need(rest[4 + i] == std::byte{0}, "padding");
      rest = rest.subspan(4 + padded);
    }
  }
  static std::string text(Bytes b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

  void section(Bytes b) {
    need(b.size() >= 16 && u32(b, 0) == 0x1A2B3C4D, "byte order");
    need(u16(b, 4) == 1 && u16(b, 6) == 0, "version");
    options(b.subspan(16), [this](std::uint16_t code, Bytes value) {
      if (code == 4) file_.application = text(value);
    });
  }

  void interface(Bytes b) {
    need(b.size() >= 8 && u16(b, 0) == 1 && u16(b, 2) == 0, "not Ethernet");
    PcapngInterface out;
    options(b.subspan(8), [&](std::uint16_t code, Bytes value) {
      if (code == 2) out.name = text(value);
      if (code == 3) out.description = text(value);
      if (code == 8) {
        need(value.size() == 8, "speed");
        out.bits_per_second = u64(value, 0);
      }
      if (code == 9) {
        need(value.size() == 1, "resolution");
        out.resolution = wire::load_u8(value.data());
      }
    });
    file_.interfaces.push_back(std::move(out));
  }

  void packet(Bytes b) {
    need(b.size() >= 20, "shorter than a packet block");
    PcapngPacket out;
    out.interface = u32(b, 0);
    need(out.interface < file_.interfaces.size(), "a packet of an unknown interface");
    out.time = std::uint64_t{u32(b, 4)} << 32 | u32(b, 8);
    const std::uint32_t length = u32(b, 12);
    need(length == u32(b, 16), "a frame that was cut");
    const std::size_t padded = (length + 3U) & ~3U;
    need(b.size() >= 20 + padded, "a frame beyond its block");
    const Bytes frame = b.subspan(20, length);
    out.frame.assign(frame.begin(), frame.end());
    for (std::size_t i = length; i < padded; ++i) need(b[20 + i] == std::byte{0}, "padding");
    options(b.subspan(20 + padded), [&](std::uint16_t code, Bytes value) {
      if (code == 1) out.comment = text(value);
      if (code == 2) {
        need(value.size() == 4, "flags");
        out.direction = u32(value, 0) & 3U;
        out.crc_error = (u32(value, 0) >> 24 & 1U) != 0;
      }
    });
    file_.packets.push_back(std::move(out));
  }

  void statistics(Bytes b) {
    need(b.size() >= 12 && u32(b, 0) < file_.interfaces.size(), "statistics");
    PcapngStatistics out;
    options(b.subspan(12), [&](std::uint16_t code, Bytes value) {
      if (code == 1) out.comment = text(value);
      if (code != 4 && code != 5) return;
      need(value.size() == 8, "a count");
      (code == 4 ? out.received : out.dropped) = u64(value, 0);
    });
    file_.statistics.push_back(std::move(out));
  }

  Bytes rest_;
  const std::string& name_;
  std::size_t blocks_ = 0;
  PcapngFile file_;
};

bool is_pause(const PcapngPacket& p) {
  return p.frame.size() >= 14 && wire::load_be16(p.frame.data() + 12) == wire::kEtherTypeMacControl;
}

}  // namespace

PcapngFile parse_pcapng(const std::vector<std::byte>& bytes, const std::string& name) {
  return Reader(bytes, name).read();
}

PcapngFile read_pcapng(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + ": cannot be opened");
  const std::vector<char> text((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return parse_pcapng(bytes, path);
}

std::string check_capture(const PcapngFile& file) {
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < file.packets.size(); ++i) {
    const PcapngPacket& p = file.packets[i];
    const std::string where = "packet " + std::to_string(i + 1) + ": ";
    if (p.time < last) return where + "earlier than the one before it";
    last = p.time;
    if (p.direction != 1 && p.direction != 2) return where + "without a direction";
    if (is_pause(p)) {
      if (p.frame.size() != wire::kPauseFrameBytes) return where + "length of a pause frame";
      continue;
    }
    wire::ParsedPacket parsed;
    wire::ParseError e = wire::parse_frame(p.frame, parsed);
    const wire::ParseError wanted = p.crc_error ? wire::ParseError::bad_icrc : wire::ParseError::ok;
    if (e != wanted) return where + std::string(wire::parse_error_name(e));
    if (p.crc_error) e = wire::parse_frame(p.frame, {true, false}, parsed);
    if (e != wire::ParseError::ok) return where + std::string(wire::parse_error_name(e));
    if (parsed.header_bytes + parsed.padded_bytes() + wire::kIcrcBytes != p.frame.size()) {
      return where + "bytes behind the ICRC";
    }
  }
  return {};
}

std::map<std::string, unsigned> count_packets(const PcapngFile& file) {
  std::map<std::string, unsigned> counts;
  for (const PcapngPacket& p : file.packets) {
    wire::ParsedPacket parsed;
    if (is_pause(p)) {
      ++counts["PFC"];
    } else if (wire::parse_frame(p.frame, {true, false}, parsed) == wire::ParseError::ok) {
      ++counts[std::string(wire::opcode_name(parsed.opcode))];
    } else {
      ++counts["malformed"];
    }
  }
  return counts;
}

}  // namespace paceline::test

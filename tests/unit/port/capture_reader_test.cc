// Files made byte by byte, and what is wrong with broken ones.
#include "dataplane/port/capture/capture_reader.h"

#include <catch2/catch.hpp>
#include <sstream>
#include <string>

#include "dataplane/base/numbers/random.h"
#include "dataplane/port/capture/pcapng_writer.h"
#include "dataplane/port/capture/port_capture.h"

namespace paceline {
namespace {

// Numbers in either byte order.
class FileText {
 public:
  explicit FileText(bool big = false) : big_(big) {}
  FileText& u16(std::uint32_t v) { return number(v, 2); }
  FileText& u32(std::uint64_t v) { return number(v, 4); }
  FileText& text(const std::string& t) {
    text_ += t;
    return *this;
  }
  // A pcapng block around what `body` has.
  FileText& block(std::uint32_t type, const FileText& body) {
    const std::uint64_t length = 12 + body.text_.size();
    return u32(type).u32(length).text(body.text_).u32(length);
  }
  const std::string& str() const { return text_; }

 private:
  FileText& number(std::uint64_t v, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) {
      text_ += static_cast<char>(v >> 8 * (big_ ? bytes - 1 - i : i));
    }
    return *this;
  }
  bool big_;
  std::string text_;
};

struct ReadFile {
  std::vector<FrameRead> frames;
  std::vector<std::string> bytes;
  std::string error;
};

ReadFile read_all(const std::string& text) {
  std::istringstream in(text);
  CaptureReader reader(in);
  ReadFile out;
  FrameRead frame;
  while (reader.next(frame)) {
    out.frames.push_back(frame);
    out.bytes.emplace_back(reinterpret_cast<const char*>(frame.bytes.data()), frame.bytes.size());
  }
  CHECK_FALSE(reader.next(frame));
  out.error = reader.error();
  return out;
}

FileText pcap_header(bool big, std::uint32_t magic, std::uint32_t link = 1) {
  FileText file(big);
  return file.u32(magic).u16(2).u16(4).u32(0).u32(0).u32(65535).u32(link);
}

FileText section(bool big) {
  FileText file(big);
  FileText body(big);
  body.u32(0x1A2B3C4D).u16(1).u16(0).u32(~0U).u32(~0U);
  return file.block(0x0A0D0D0A, body);
}

FileText interface_body(bool big, std::uint32_t link = 1) {
  return FileText(big).u16(link).u16(0).u32(0);
}

FileText packet_body(bool big, std::uint32_t interface, std::uint64_t ticks,
                     const std::string& bytes, std::uint32_t original = 0) {
  FileText body(big);
  body.u32(interface).u32(ticks >> 32).u32(ticks & 0xFFFFFFFF).u32(bytes.size());
  body.u32(original == 0 ? bytes.size() : original).text(bytes);
  return body.text(std::string((4 - bytes.size() % 4) % 4, '\0'));
}

TEST_CASE("capture reader: pcap in either byte order, micro- and nanoseconds", "[capture_reader]") {
  for (const bool big : {false, true}) {
    for (const bool nanos : {false, true}) {
      FileText file = pcap_header(big, nanos ? 0xA1B23C4D : 0xA1B2C3D4);
      file.u32(5).u32(7).u32(3).u32(3).text("abc");
      file.u32(6).u32(999'999).u32(0).u32(9);
      const ReadFile read = read_all(file.str());
      CHECK(read.error == "");
      REQUIRE(read.frames.size() == 2);
      CHECK(read.bytes[0] == "abc");
      CHECK(read.frames[0].number == 1);
      CHECK(read.frames[0].at.count == 5'000'000'000 + (nanos ? 7 : 7'000));
      CHECK(read.frames[1].at.count == 6'000'000'000 + (nanos ? 999'999 : 999'999'000));
      CHECK(read.frames[1].original_bytes == 9);
      CHECK(read.frames[1].bytes.empty());
    }
  }
}

TEST_CASE("capture reader: pcapng in either byte order, with time options and unknown blocks",
          "[capture_reader]") {
  for (const bool big : {false, true}) {
    FileText file = section(big);
    FileText options = interface_body(big);
    options.u16(2).u16(3).text(std::string("if\0\0", 4));      // a name, padded
    options.u16(9).u16(1).text(std::string("\x83\0\0\0", 4));  // eighths of a second
    options.u16(14).u16(8);
    big ? options.u32(0).u32(100) : options.u32(100).u32(0);
    options.u16(0).u16(0);
    file.block(1, options).block(1, interface_body(big));
    file.block(0x77, FileText(big).u32(1));
    file.block(6, packet_body(big, 0, 12, "hello"));
    file.block(6, packet_body(big, 1, 1'500'000, "ab", 80));
    file.block(3, FileText(big).u32(4).text("wxyz"));
    // A second section forgets the interfaces of the first.
    file.text(section(!big).str());
    FileText rest(!big);
    rest.block(1, interface_body(!big)).block(6, packet_body(!big, 0, 1, "2nd"));
    file.text(rest.str());
    const ReadFile read = read_all(file.str());
    CHECK(read.error == "");
    REQUIRE(read.frames.size() == 4);
    CHECK(read.bytes == std::vector<std::string>{"hello", "ab", "wxyz", "2nd"});
    CHECK(read.frames[0].at.count == 101'500'000'000);
    CHECK(read.frames[1].at.count == 1'500'000'000);
    CHECK(read.frames[1].interface == 1);
    CHECK(read.frames[1].original_bytes == 80);
    CHECK(read.frames[3].at.count == 1000);
    CHECK(read.frames[3].number == 4);
  }
}

TEST_CASE("capture reader: what is wrong is said with its offset", "[capture_reader]") {
  const auto error_of = [](const FileText& file) { return read_all(file.str()).error; };
  CHECK(error_of(FileText().text("abc")) ==
        "byte 0: not a capture file: it is shorter than four bytes");
  CHECK(error_of(FileText().text("not a capture")) ==
        "byte 0: not a capture file: it begins neither like pcap nor like pcapng");
  CHECK(error_of(FileText().u32(0xA1B2C3D4).u32(0)) == "byte 8: ends inside the header of a pcap");
  CHECK(error_of(pcap_header(false, 0xA1B2C3D4, 101)) ==
        "byte 20: link type 101; allowed is Ethernet, 1");
  CHECK(error_of(pcap_header(false, 0xA1B2C3D4).u32(1)) ==
        "byte 28: ends inside the header of a frame");
  CHECK(error_of(pcap_header(false, 0xA1B2C3D4).u32(0).u32(0).u32(5).u32(5).text("abcd")) ==
        "byte 44: ends inside a frame");
  CHECK(error_of(pcap_header(false, 0xA1B2C3D4).u32(0).u32(0).u32(1U << 30).u32(5)) ==
        "byte 32: a frame of 1073741824 bytes; allowed are 16777216");
  CHECK(error_of(pcap_header(false, 0xA1B2C3D4).u32(0).u32(1'000'000).u32(0).u32(0)) ==
        "byte 28: a fraction of a second that is more than one");
  CHECK(error_of(section(false).block(6, packet_body(false, 0, 0, "x"))) ==
        "byte 36: interface 0 of 0");
  CHECK(error_of(section(false)
                     .block(1, interface_body(false, 228))
                     .block(6, packet_body(false, 0, 0, "x"))) ==
        "byte 48: a frame of interface 0, whose link type is 228; allowed is Ethernet, 1");
  CHECK(error_of(section(false).u32(1).u32(21)) ==
        "byte 32: a block of 21 bytes; allowed are multiples of 4 from 12 to 16777216");
  CHECK(error_of(section(false).u32(1).u32(20).u32(0).u32(0).u32(24)) ==
        "byte 44: a block that ends with the length 24 and began with 20");
  CHECK(error_of(section(false).u32(1).u32(20).u32(0)) ==
        "byte 40: ends inside a block of 20 bytes");
  FileText body(false);
  body.u32(0).u32(0).u32(0).u32(9).u32(9).text("1234");
  CHECK(error_of(section(false).block(1, interface_body(false)).block(6, body)) ==
        "byte 68: a frame of 9 bytes in a block with room for 4");
}

TEST_CASE("capture reader: reads what the writers write", "[capture_reader]") {
  std::ostringstream out;
  PortCaptureConfig config;
  config.name = "port";
  config.rate = rate_from_gbps(1);
  config.epoch = Nanos{1'700'000'000'250'000'000};
  PortCapture capture(out, config);
  const std::string bytes(77, 'q');
  const auto span = std::as_bytes(std::span(bytes));
  capture.frame(picos_from_nanos(7), CaptureDirection::inbound, span);
  capture.frame(picos_from_nanos(8), CaptureDirection::outbound, span.first(14));
  capture.finish(picos_from_nanos(9), 3);
  const ReadFile read = read_all(out.str());
  CHECK(read.error == "");
  REQUIRE(read.frames.size() == 2);
  CHECK(read.bytes[0] == bytes);
  CHECK(read.bytes[1].size() == 14);
  CHECK(read.frames[0].at.count == 1'700'000'000'250'000'007);
}

// Whatever is done to a file, the reader comes to an end, within it.
TEST_CASE("capture reader: damaged files", "[capture_reader]") {
  FileText good = section(false).block(1, interface_body(false));
  for (unsigned i = 0; i < 6; ++i) {
    good.block(6, packet_body(false, 0, i * 1000, std::string(20 + i, 'x')));
  }
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    std::string text = good.str();
    for (std::uint64_t n = random.below(4); n <= 4; ++n) {
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    }
    text.resize(random.below(text.size() + 1));
    INFO("seed " << seed);
    std::size_t total = 0;
    const ReadFile read = read_all(text);
    for (const std::string& frame : read.bytes) total += frame.size();
    CHECK(total <= text.size());
    if (!read.error.empty()) CHECK_THAT(read.error, Catch::StartsWith("byte "));
  }
}

}  // namespace
}  // namespace paceline

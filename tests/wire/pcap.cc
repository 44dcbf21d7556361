#include "tests/wire/pcap.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "dataplane/wire/headers/headers.h"

namespace paceline::test {
namespace {

std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + ": cannot be opened");
  const std::vector<char> text((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

Frame from_hex(const std::string& path, std::string_view text) {
  Frame out;
  if (text.size() % 2 != 0) throw std::runtime_error(path + ": odd number of hex digits");
  for (std::size_t i = 0; i < text.size(); i += 2) {
    out.push_back(static_cast<std::byte>(std::stoul(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return out;
}

}  // namespace

std::string golden_path(const std::string& name) {
  return std::string(PACELINE_SOURCE_DIR) + "/tests/wire/golden/" + name;
}

std::vector<std::string> golden_captures() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_path(""))) {
    if (entry.path().extension() == ".pcap") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Frame> read_pcap(const std::string& path) {
  constexpr std::uint32_t kMagicMicros = 0xA1B2C3D4;
  constexpr std::uint32_t kMagicNanos = 0xA1B23C4D;
  constexpr std::uint32_t kLinkEthernet = 1;
  const auto file = read_file(path);
  const auto fail = [&path](const std::string& what) {
    throw std::runtime_error(path + ": " + what);
  };
  if (file.size() < 24) fail("shorter than a pcap header");
  const std::uint32_t magic = wire::load_le32(file.data());
  if (magic != kMagicMicros && magic != kMagicNanos) fail("no little-endian pcap");
  if (wire::load_le32(file.data() + 20) != kLinkEthernet) fail("link type is not Ethernet");
  std::vector<Frame> frames;
  for (std::size_t at = 24; at < file.size();) {
    if (file.size() - at < 16) fail("ends inside a record header");
    const std::uint32_t captured = wire::load_le32(file.data() + at + 8);
    const std::uint32_t original = wire::load_le32(file.data() + at + 12);
    at += 16;
    if (captured != original) fail("a frame was cut short when captured");
    if (file.size() - at < captured) fail("ends inside a frame");
    const auto begin = file.begin() + static_cast<std::ptrdiff_t>(at);
    frames.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(captured));
    at += captured;
  }
  return frames;
}

std::vector<IcrcVector> read_icrc_vectors() {
  const std::string path = golden_path("icrc_vectors.txt");
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path + ": cannot be opened");
  std::vector<IcrcVector> vectors;
  std::string title;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    if (line[0] == '#') {
      title = line.substr(1);
      continue;
    }
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) throw std::runtime_error(path + ": a line without an ICRC");
    const Frame icrc = from_hex(path, std::string_view(line).substr(space + 1));
    if (icrc.size() != 4) throw std::runtime_error(path + ": an ICRC that has not 4 bytes");
    vectors.push_back({title, from_hex(path, std::string_view(line).substr(0, space)),
                       wire::load_le32(icrc.data())});
  }
  return vectors;
}

Frame frame_of(const IcrcVector& vector) {
  const std::size_t end = wire::kEthernetBytes + vector.datagram.size();
  Frame frame(end + wire::kIcrcBytes);
  frame[0] = frame[6] = std::byte{0x02};
  const bool ipv6 = static_cast<unsigned>(vector.datagram.at(0)) >> 4 == 6;
  wire::store_be16(frame.data() + 12, ipv6 ? wire::kEtherTypeIpv6 : wire::kEtherTypeIpv4);
  std::memcpy(frame.data() + wire::kEthernetBytes, vector.datagram.data(), vector.datagram.size());
  wire::store_le32(frame.data() + end, vector.icrc);
  return frame;
}

}  // namespace paceline::test

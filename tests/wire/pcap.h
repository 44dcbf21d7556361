// Reads classic pcap files (the format of libpcap's savefile manual page), Ethernet only: enough
// for the golden captures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace paceline::test {

using Frame = std::vector<std::byte>;

// All frames of a file. Throws std::runtime_error with the file's name and what is wrong: a test
// that cannot read its data must fail.
std::vector<Frame> read_pcap(const std::string& path);

// "tests/wire/golden/<name>" in the source tree.
std::string golden_path(const std::string& name);

// The names of all captures there, without ".pcap", sorted.
std::vector<std::string> golden_captures();

// One packet of icrc_vectors.txt.
struct IcrcVector {
  std::string title;   // the comment above it
  Frame datagram;      // from the IP header to the end of the pad
  std::uint32_t icrc;  // as load_le32 reads it
};
std::vector<IcrcVector> read_icrc_vectors();

// The vector as a frame: an Ethernet header of our own before it, the ICRC behind it.
Frame frame_of(const IcrcVector& vector);

}  // namespace paceline::test

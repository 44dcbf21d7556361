// Reads pcapng files (IETF draft-ietf-opsawg-pcapng) strictly: every length, padding and end of
// options as the draft has it. Independent of the writer: it is what tests judge it by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace paceline::test {

struct PcapngInterface {
  std::string name;
  std::string description;
  std::uint64_t bits_per_second = 0;
  unsigned resolution = 6;  // 10^-n seconds
};

struct PcapngPacket {
  std::uint32_t interface = 0;
  std::uint64_t time = 0;  // in units of the interface's resolution
  std::vector<std::byte> frame;
  unsigned direction = 0;  // 1 inbound, 2 outbound
  bool crc_error = false;
  std::string comment;
};

struct PcapngStatistics {
  std::uint64_t received = 0;
  std::uint64_t dropped = 0;
  std::string comment;
};

struct PcapngFile {
  std::string application;
  std::vector<PcapngInterface> interfaces;
  std::vector<PcapngPacket> packets;
  std::vector<PcapngStatistics> statistics;
};

// Throws std::runtime_error with the name and what is wrong.
PcapngFile read_pcapng(const std::string& path);
PcapngFile parse_pcapng(const std::vector<std::byte>& bytes, const std::string& name);

// What must hold of the packets of a capture: times never go back; every one parses, ICRC included,
// or is marked as damaged and fails by its ICRC alone; pause frames are well formed. Empty when so.
std::string check_capture(const PcapngFile& file);

// "RC SEND Only", "GRANT", ..., "PFC": how many of each.
std::map<std::string, unsigned> count_packets(const PcapngFile& file);

}  // namespace paceline::test

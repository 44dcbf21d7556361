#include "dataplane/port/capture/shown_frame.h"

#include "dataplane/wire/bytes/endian.h"
#include "dataplane/wire/headers/headers.h"

namespace paceline {

namespace {

std::string_view place_of(Fate fate) {
  switch (fate) {
    case Fate::lost:
      return "lost on this link: ";
    case Fate::refused:
      return "dropped at the end of this link: ";
    case Fate::never_sent:
      return "dropped in front of this link: ";
    case Fate::delivered:
      break;
  }
  return "";
}

wire::MacAddress pausing(bool forward) {
  return wire::MacAddress::local(forward ? 0xFFFE : 0xFFFF);
}

}  // namespace

ShownFrame::ShownFrame(const Packet& packet, bool forward) {
  static_assert(sizeof(trailer_) == wire::kIcrcBytes);
  if ((packet.flags & packet_flag::pfc) != 0) [[unlikely]] {
    pause_ = wire::build_pause_frame(pausing(forward), packet.traffic_class, packet.entropy != 0);
    pieces_[0] = pause_;
  } else {
    pieces_[0] = packet.header_view();
    if (packet.has_bytes()) pieces_[1] = packet.payload_view();
    if (packet.bth_offset != 0) {
      wire::store_le32(trailer_.data(), packet.icrc);
      pieces_[2] = trailer_;
    }
  }
  for (const auto piece : pieces_) bytes_ += piece.size();
}

std::string capture_comment(std::uint8_t flags, Fate fate, std::string_view reason) {
  std::string text;
  const auto note = [&text](std::string_view more) {
    if (!text.empty()) text += "; ";
    text += more;
  };
  if ((flags & packet_flag::trimmed) != 0) note("trimmed on the way");
  if ((flags & packet_flag::duplicate) != 0) note("a copy made on the way");
  if ((flags & packet_flag::corrupt) != 0) note("bit error on the way");
  if (fate != Fate::delivered) {
    note(place_of(fate));
    text += reason;
  }
  return text;
}

}  // namespace paceline

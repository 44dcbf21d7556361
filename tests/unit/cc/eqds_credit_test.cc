// Both halves of EQDS over a network that loses packets: what becomes of the credit of lost ones.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <deque>
#include <vector>

#include "cc/eqds/eqds.h"
#include "cc/eqds/receiver.h"
#include "dataplane/base/numbers/random.h"

namespace paceline::cc {
namespace {

constexpr std::int64_t kRoundTrip = 4'680;
constexpr std::int64_t kOneWay = kRoundTrip / 2;
constexpr std::uint64_t kPayload = 4'096;
constexpr std::uint64_t kWire = 4'170;
constexpr std::int64_t kPacketNs = 334;  // at 100 Gb/s

EqdsParams credit_params() {
  std::vector<double> values;
  for (const ParamSpec& spec : eqds_info().params) values.push_back(spec.default_value);
  return make_eqds_params(values, PortFacts{rate_from_gbps(100), kPayload, kWire, kRoundTrip});
}

// One sender with work for ever, which learns of a loss a round trip after it has sent the packet.
class LossyChannel {
 public:
  explicit LossyChannel(std::uint64_t seed) : random_(seed, 1) {
    event(Signal::start);
    event_.backlog_bytes = event_.message_bytes = 1'000'000'000;
    event(Signal::message);
    UplinkShare share;
    share.cap_mbps = 100'000;
    share.answers_start = true;
    share.start_bytes = Eqds::uplink_want(state_, params_).start_bytes;
    event_.share = &share;
    event(Signal::share);
    event_.share = nullptr;
    granted_ = share.start_bytes;  // by the sender itself
  }

  // Each data packet is lost with that probability, and each control message with a tenth of it.
  void run(std::int64_t nanos, double loss) {
    for (const std::int64_t end = now_ + nanos; now_ < end; now_ += kPacketNs) {
      hear_requests();
      hear_data();
      grant(loss);
      hear_grants();
      hear_losses();
      if (decision_.timed && decision_.wake_at.count <= now_) event(Signal::tick);
      send(loss);
      check();
    }
  }

  std::uint64_t arrived() const { return arrived_; }
  std::uint64_t lost() const { return lost_; }
  unsigned requests() const { return requests_; }

 private:
  struct Sent {
    std::int64_t at;
    std::uint64_t total;  // of the channel, this packet included
    bool lost;
  };
  template <class Message>
  struct Posted {
    std::int64_t at;
    Message message;
  };

  bool chance(double of) { return random_.uniform() < of; }

  void event(Signal signal) {
    event_.now = Nanos{now_};
    event_.signal = signal;
    Eqds::on_event(state_, params_, event_, decision_);
    if (decision_.request) {
      RequestMessage request;
      Eqds::fill_request(state_, params_, event_, request);
      request.channel = 1;
      ++requests_;
      to_receiver_.push_back({now_ + kOneWay, request});
    }
    event_.sent_bytes = event_.message_bytes = event_.lost_bytes = 0;
  }

  void hear_requests() {
    for (; !to_receiver_.empty() && to_receiver_.front().at <= now_; to_receiver_.pop_front()) {
      const RequestMessage& request = to_receiver_.front().message;
      counters_ = receiver_.on_request(Nanos{now_}, 1, request);
      if (request.lost) told_total_ = std::max(told_total_, request.sent_total);
    }
  }
  void hear_data() {
    for (; !data_.empty() && data_.front().at + kOneWay <= now_; data_.pop_front()) {
      const Sent& sent = data_.front();
      under_way_ -= kWire;
      if (sent.lost) {
        lost_ += kWire;
        unnoticed_.push_back(sent);
        untold_.push_back(sent);
      } else {
        arrived_ += kWire;
        counters_->rx_bytes += kWire;
        ++counters_->rx_packets;
      }
    }
    while (!untold_.empty() && untold_.front().total <= told_total_) untold_.pop_front();
  }
  void grant(double loss) {
    std::array<ReceiverOutput, 4> out;
    while (receiver_.next_wake().count <= now_) {
      const std::size_t n = receiver_.poll(Nanos{now_}, out);
      for (std::size_t i = 0; i < n; ++i) {
        granted_ = std::max(granted_, out[i].grant.limit_total);
        if (!chance(loss / 10)) to_sender_.push_back({now_ + kOneWay, out[i].grant});
      }
      if (n == 0) break;
    }
    REQUIRE(receiver_.check_invariants(Nanos{now_}) == "");
  }
  void hear_grants() {
    for (; !to_sender_.empty() && to_sender_.front().at <= now_; to_sender_.pop_front()) {
      event_.grant = &to_sender_.front().message;
      event(Signal::grant);
      event_.grant = nullptr;
    }
  }
  void hear_losses() {
    std::uint32_t bytes = 0;
    for (; !unnoticed_.empty() && unnoticed_.front().at + kRoundTrip <= now_;
         unnoticed_.pop_front()) {
      bytes += kWire;
      event_.backlog_bytes += kPayload;
    }
    if (bytes == 0) return;
    event_.lost_bytes = bytes;
    event(Signal::nack);
  }
  void send(double loss) {
    if (event_.sent_total + kWire > decision_.ceiling) return;
    event_.sent_total += kWire;
    event_.sent_bytes += kWire;
    event_.backlog_bytes -= kPayload;
    under_way_ += kWire;
    data_.push_back({now_, event_.sent_total, chance(loss)});
  }

  // Credit granted = bytes arrived + bytes lost + bytes in flight + credit that is not used yet.
  // The receiver sees the first of these alone. It may take for unused: what is unused, what is
  // under way, and losses that no REQUEST has told of. It may not take less for unused than what
  // is, but for packets that arrive after a REQUEST that has counted them.
  void check() {
    if (counters_ == nullptr) return;
    const std::uint64_t sent = event_.sent_total;
    REQUIRE(arrived_ + lost_ + under_way_ == sent);
    REQUIRE(sent <= granted_);
    const std::uint64_t unused = granted_ - sent;
    const std::uint64_t believed = receiver_.unused_credit(1);
    REQUIRE(believed <= unused + under_way_ + kWire * untold_.size());
    const std::uint64_t counted = params_.max_credit_bytes + params_.first_window_bytes;
    REQUIRE(unused <= believed + counted);
  }

  EqdsParams params_ = credit_params();
  Eqds::State state_{};
  Decision decision_{};
  Event event_{};
  EqdsReceiver receiver_{params_};
  ChannelCounters* counters_ = nullptr;
  Random random_;
  std::int64_t now_ = 1'000'000;
  std::deque<Sent> data_, unnoticed_, untold_;
  std::deque<Posted<RequestMessage>> to_receiver_;
  std::deque<Posted<GrantMessage>> to_sender_;
  std::uint64_t granted_ = 0, arrived_ = 0, lost_ = 0, under_way_ = 0, told_total_ = 0;
  unsigned requests_ = 0;
};

TEST_CASE("eqds: credit of lost packets is granted again, and no more than that",
          "[cc][eqds][property]") {
  const double pace = 0.99 * 12.5;  // bytes per nanosecond
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    LossyChannel channel(seed);
    Random random(seed, 2);
    channel.run(20 * kRoundTrip, 0);
    for (unsigned phase = 0; phase < 8; ++phase) {
      // A few losses, or a plane of eight that is gone, or all; for less than a round trip or many.
      constexpr std::array<double, 4> kLosses = {0.001, 0.02, 0.125, 1};
      const double loss = kLosses[random.below(4)];
      const auto lasts = static_cast<std::int64_t>(kRoundTrip / 2 + random.below(20 * kRoundTrip));
      const std::uint64_t before = channel.lost();
      channel.run(lasts, loss);
      channel.run(12 * kRoundTrip, 0);  // noticed, told, answered
      const std::uint64_t from = channel.arrived();
      channel.run(100 * kRoundTrip, 0);
      CAPTURE(seed, phase, loss, lasts, channel.lost() - before);
      CHECK(static_cast<double>(channel.arrived() - from) >= 0.99 * pace * 100 * kRoundTrip);
    }
    CHECK(channel.lost() > 0);
  }
}

TEST_CASE("eqds: a long message under steady loss tells of it once a round trip", "[cc][eqds]") {
  LossyChannel channel(7);
  channel.run(20 * kRoundTrip, 0);
  const unsigned before = channel.requests();
  const std::uint64_t from = channel.arrived() + channel.lost();
  channel.run(1000 * kRoundTrip, 0.01);
  CHECK(channel.requests() - before <= 1'001);
  CHECK(channel.requests() - before >= 100);
  // All that the receiver paces is used.
  CHECK(static_cast<double>(channel.arrived() + channel.lost() - from) >=
        0.98 * 0.99 * 12.5 * 1000 * kRoundTrip);
}

}  // namespace
}  // namespace paceline::cc

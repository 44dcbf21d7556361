// The responder's resources for READs and atomics (InfiniBand vol. 1, 9.7.2.6 and 9.7.4.1.3): the
// last max_dest_rd_atomic requests of these kinds, with what is needed to answer each of them, and
// to answer it again. Requests that still need an answer, or the rest of one, are answered in the
// order of their sequence numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/containers/fixed_ring.h"
#include "dataplane/base/protocol/psn.h"

namespace paceline::transport {

struct ResponderResource {
  Psn first_psn;              // of the request and of its first response
  std::uint32_t packets = 1;  // responses
  std::uint32_t begin = 0;    // response that the present run began with
  std::uint32_t next = 0;     // response to be sent next; == packets: nothing is due
  std::uint32_t sent = 0;     // responses below this were sent at least once
  std::uint32_t msn = 0;      // message sequence number with this request
  std::uint32_t rkey = 0;     // READ
  std::uint32_t pd = 0;       // READ: protection domain of the region
  bool atomic = false;
  std::uint64_t address = 0;   // READ
  std::uint64_t length = 0;    // READ
  std::uint64_t original = 0;  // atomic: the value before the operation, which ran once

  bool due() const { return next != packets; }
  bool answered_once() const { return sent == packets; }
};

class ResponseQueue {
 public:
  explicit ResponseQueue(std::size_t depth) : depth_(depth), ring_(depth) {}

  // False when the peer has as many requests outstanding as were agreed on.
  bool has_room() const {
    if (ring_.size() < depth_) return true;
    return depth_ != 0 && (!ring_.front().due() || ring_.front().answered_once());
  }
  // The oldest request, if add() forgets it although it is being answered. Then it is being
  // answered a second time, because its request came again late: the peer would not ask for more if
  // it had not received the first answer.
  const ResponderResource* outlived() const {
    return ring_.size() == depth_ && ring_.front().due() ? &ring_.front() : nullptr;
  }
  // Adds a new request, which is due; forgets the oldest if it has to. Requires has_room().
  void add(const ResponderResource& resource) {
    if (ring_.size() == depth_) {
      if (ring_.front().due() && --due_ != 0) {
        while (serving_ == ring_.head() || !ring_.at(serving_).due()) ++serving_;
      }
      ring_.pop();
    }
    if (due_ == 0) serving_ = ring_.tail();
    ring_.push(resource);
    ++due_;
  }

  // Forgets the oldest request, due or not, and returns it. Requires that there is one.
  ResponderResource drop_oldest() {
    const ResponderResource dropped = ring_.front();
    const bool serving = due_ != 0 && serving_ == ring_.head();
    ring_.pop();
    if (!dropped.due()) return dropped;
    --due_;
    if (serving && due_ != 0) {
      while (!ring_.at(serving_).due()) ++serving_;
    }
    return dropped;
  }

  // The kept request that `psn` belongs to; nullptr when it is not kept.
  ResponderResource* find(Psn psn) {
    for (std::uint32_t p = ring_.head(); p != ring_.tail(); ++p) {
      ResponderResource& r = ring_.at(p);
      const std::int32_t index = distance(psn, r.first_psn);
      if (index >= 0 && static_cast<std::uint32_t>(index) < r.packets) return &r;
    }
    return nullptr;
  }

  const ResponderResource* find(Psn psn) const {
    return const_cast<ResponseQueue*>(this)->find(psn);
  }

  // Answers `resource` (from find) again from response `index` on.
  void repeat(ResponderResource& resource, std::uint32_t index) {
    if (!resource.due()) {
      ++due_;
      for (std::uint32_t p = ring_.head(); p != ring_.tail(); ++p) {
        if (&ring_.at(p) != &resource) continue;
        const bool earlier = p - ring_.head() < serving_ - ring_.head();
        if (due_ == 1 || earlier) serving_ = p;
        break;
      }
    }
    resource.begin = resource.next = index;
  }

  bool any_due() const { return due_ != 0; }
  // The first request that is due. Requires any_due().
  ResponderResource& serving() { return ring_.at(serving_); }
  const ResponderResource& serving() const { return ring_.at(serving_); }
  // A response of serving() has been sent.
  void advance() {
    ResponderResource& r = serving();
    ++r.next;
    r.sent = std::max(r.sent, r.next);
    if (r.due()) return;
    if (--due_ == 0) return;
    do {
      ++serving_;
    } while (!ring_.at(serving_).due());
  }

  void clear() {
    ring_.clear();
    due_ = 0;
  }
  std::size_t depth() const { return depth_; }

 private:
  std::uint32_t due_ = 0;      // first: every acknowledgement asks
  std::uint32_t serving_ = 0;  // position of the first that is due, if any is
  std::size_t depth_;
  FixedRing<ResponderResource> ring_;
};

}  // namespace paceline::transport

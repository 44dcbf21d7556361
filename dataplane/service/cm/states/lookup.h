// Service id resolution (InfiniBand Architecture Specification, volume 1, 12.11), by which an end
// that uses datagrams finds the queue pair of a service. This class is the asking end, which
// repeats its request until it is answered. The other end answers at once and keeps only the
// request id.
#pragma once

#include <cerrno>
#include <cstdint>

#include "dataplane/base/units.h"
#include "dataplane/service/cm/mad/mad.h"
#include "dataplane/service/cm/states/connection.h"

namespace paceline::service::cm {

class Lookup {
 public:
  // `request` holds everything but the attribute.
  void ask(Nanos now, Mad request, Actions& out) {
    request.attribute = Attribute::sidr_req;
    request_ = request;
    retries_left_ = Connection::kMostRetries;
    deadline_ = {now.count + kPatience.count};
    out.send.push_back(request);
  }
  // False if `mad` is not the answer.
  bool receive(const Mad& mad) {
    if (mad.attribute != Attribute::sidr_rep || !asking()) return false;
    deadline_ = kNeverNanos;
    return true;
  }
  // True if the last try was not answered either.
  bool expire(Nanos now, Actions& out) {
    if (now.count < deadline_.count) return false;
    if (retries_left_ == 0) {
      deadline_ = kNeverNanos;
      return true;
    }
    --retries_left_;
    deadline_ = {now.count + kPatience.count};
    out.send.push_back(request_);
    return false;
  }
  bool asking() const { return deadline_.count != kNeverNanos.count; }
  Nanos deadline() const { return deadline_; }

 private:
  static constexpr Nanos kPatience{std::int64_t{4096} << Connection::kResponseTimeout};
  Mad request_{};
  std::uint8_t retries_left_ = 0;
  Nanos deadline_ = kNeverNanos;
};

}  // namespace paceline::service::cm

// Service id resolution (InfiniBand Architecture Specification, volume 1, 12.11): an end that uses
// datagrams finds the queue pair of a service.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "dataplane/base/units.h"
#include "dataplane/service/cm/mad/mad.h"
#include "dataplane/service/cm/states/connection.h"

namespace paceline::service::cm {

// The asking end, which repeats its request until it is answered.
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
    ++out.repeated;
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

// The asked end. It answers when its program does, and again when the request is repeated.
class LookupAnswer {
 public:
  void take_request(const Mad& request) { request_ = request; }
  // The program has not answered yet.
  bool due() const { return request_ && !answer_; }
  // An answer, to be completed by the caller.
  Mad draft(std::uint8_t status, std::span<const std::byte> data) const {
    Mad mad;
    mad.attribute = Attribute::sidr_rep;
    mad.transaction = request_->transaction;
    mad.local_id = request_->local_id;
    mad.service_id = request_->service_id;
    mad.status = status;
    std::copy_n(data.begin(), std::min(data.size(), private_bytes(mad.attribute)),
                mad.private_data.begin());
    return mad;
  }
  void give(const Mad& answer, Actions& out) {
    answer_ = answer;
    out.send.push_back(answer);
  }
  // The request has arrived again.
  void repeat(Actions& out) const {
    if (!answer_) return;
    ++out.repeated;
    out.send.push_back(*answer_);
  }

 private:
  std::optional<Mad> request_;
  std::optional<Mad> answer_;
};

}  // namespace paceline::service::cm

#include "dataplane/service/cm/manager/mailbox.h"

namespace paceline::service::cm {

void Mailbox::post(const Parcel& parcel, const Mad& mad, bool outside) {
  Parcel filled = parcel;
  filled.bytes = build_mad(mad);
  if (!outside) {
    parcels_.push_back(filled);
    return;
  }
  ++counts_.sent;
  const bool no = mad.attribute == Attribute::rej ||
                  (mad.attribute == Attribute::sidr_rep && mad.status != sidr_status::success);
  if (no) ++counts_.rejected;
  leaving_.push_back(filled);
}

std::optional<Parcel> Mailbox::next() {
  if (parcels_.empty()) return std::nullopt;
  const Parcel out = parcels_.front();
  parcels_.pop_front();
  return out;
}

Mad refusal_of(const Mad& request, std::uint16_t reason) {
  Mad mad;
  mad.transaction = request.transaction;
  if (request.attribute == Attribute::sidr_req) {
    mad.attribute = Attribute::sidr_rep;
    mad.local_id = request.local_id;
    mad.service_id = request.service_id;
    mad.status = reason == reject_reason::invalid_service_id ? sidr_status::service_unsupported
                                                             : sidr_status::rejected;
  } else {
    mad.attribute = Attribute::rej;
    mad.remote_id = request.local_id;
    mad.about = About::req;
    mad.reason = reason;
  }
  return mad;
}

std::optional<Mad> answer_to_unknown(const Mad& mad) {
  Mad out;
  out.transaction = mad.transaction;
  out.local_id = mad.remote_id;
  out.remote_id = mad.local_id;
  switch (mad.attribute) {
    case Attribute::dreq:  // the connection no longer exists: the other end need not wait
      out.attribute = Attribute::drep;
      return out;
    case Attribute::rep:  // it will not be confirmed
      out.attribute = Attribute::rej;
      out.about = About::rep;
      out.reason = reject_reason::invalid_communication_id;
      return out;
    default:
      return std::nullopt;
  }
}

}  // namespace paceline::service::cm

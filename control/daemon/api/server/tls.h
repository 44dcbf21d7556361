// TLS of the API on TCP.
#pragma once

#include <boost/asio/ssl/context.hpp>

#include <string>

#include "control/daemon/api/server/api_settings.h"

namespace paceline::daemon {

// Sets up TLS 1.2 and later, with the certificate and the key of `settings`. Returns an error, or
// an empty text.
std::string set_up_tls(const TcpSettings& settings, boost::asio::ssl::context& context);

}  // namespace paceline::daemon

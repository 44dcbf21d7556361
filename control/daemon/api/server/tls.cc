#include "control/daemon/api/server/tls.h"

#include <openssl/crypto.h>
#include <openssl/ssl.h>

#include <boost/asio/buffer.hpp>

#include "control/daemon/api/private_file.h"

namespace paceline::daemon {

std::string set_up_tls(const TcpSettings& settings, boost::asio::ssl::context& context) {
  namespace ssl = boost::asio::ssl;
  if (settings.certificate.empty() || settings.key.empty() || settings.tokens.empty()) {
    return "TCP needs a certificate, a key and a file of tokens; without all three only the Unix "
           "socket is served";
  }
  std::string key;
  if (std::string wrong = read_private_file(settings.key, key); !wrong.empty()) return wrong;
  ::SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  ::SSL_CTX_set_options(context.native_handle(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                                     SSL_OP_CIPHER_SERVER_PREFERENCE);
  boost::system::error_code error;
  context.use_certificate_chain_file(settings.certificate, error);
  if (error) return settings.certificate + ": no certificate in PEM: " + error.message();
  context.use_private_key(boost::asio::buffer(key), ssl::context::pem, error);
  ::OPENSSL_cleanse(key.data(), key.size());
  if (error) return settings.key + ": no key in PEM for that certificate: " + error.message();
  if (::SSL_CTX_check_private_key(context.native_handle()) != 1) {
    return settings.key + ": not the key of " + settings.certificate;
  }
  return {};
}

}  // namespace paceline::daemon

// The functions of Boost.Beast and of Asio's TLS that are no templates
// (BOOST_BEAST_SEPARATE_COMPILATION).
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>

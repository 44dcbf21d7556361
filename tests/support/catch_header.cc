// Nothing but the precompiled <catch2/catch.hpp>, which the test executables share.

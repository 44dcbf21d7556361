# What plug-ins are built against, as it is installed: <paceline/cc.h>, <paceline/cc_rates.h>, a CMake
# package, a pkg-config file.
#
#   cmake --install BUILD --component paceline-cc --prefix WHERE     needs nothing built
#
# Versions are those of the interface, not of the program.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(plugin_header "${PROJECT_SOURCE_DIR}/cc/plugin/paceline_cc.h")
set(plugin_rates "${PROJECT_SOURCE_DIR}/cc/plugin/paceline_cc_rates.h")
file(STRINGS "${plugin_header}" plugin_versions REGEX "^#define PACELINE_CC_ABI_(MAJOR|MINOR) ")
string(REGEX MATCHALL "[0-9]+" plugin_versions "${plugin_versions}")
list(JOIN plugin_versions "." PLUGIN_ABI)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${plugin_header}")

# The build tree's own copy, for those who build plug-ins inside it.
set(PACELINE_PLUGIN_INCLUDE "${PROJECT_BINARY_DIR}/plugin/include")
configure_file("${plugin_header}" "${PACELINE_PLUGIN_INCLUDE}/paceline/cc.h" COPYONLY)
configure_file("${plugin_rates}" "${PACELINE_PLUGIN_INCLUDE}/paceline/cc_rates.h" COPYONLY)

set(plugin_cmake "${CMAKE_INSTALL_LIBDIR}/cmake/paceline-cc")
set(plugin_made "${PROJECT_BINARY_DIR}/plugin/package")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/paceline-cc-config.cmake.in"
  "${plugin_made}/paceline-cc-config.cmake" INSTALL_DESTINATION "${plugin_cmake}"
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file("${plugin_made}/paceline-cc-config-version.cmake"
  VERSION "${PLUGIN_ABI}" COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
# Relative to where the file lies, so that an installation can be moved.
set(PLUGIN_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
file(READ "${PROJECT_SOURCE_DIR}/cmake/paceline-cc.pc.in" pc)
string(REPLACE "@CMAKE_INSTALL_PREFIX@" "\${pcfiledir}/${up}" pc "${pc}")
string(CONFIGURE "${pc}" pc @ONLY)
file(WRITE "${plugin_made}/paceline-cc.pc" "${pc}")

install(FILES "${plugin_header}" RENAME cc.h COMPONENT paceline-cc
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/paceline")
install(FILES "${plugin_rates}" RENAME cc_rates.h COMPONENT paceline-cc
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/paceline")
install(FILES "${plugin_made}/paceline-cc-config.cmake"
  "${plugin_made}/paceline-cc-config-version.cmake" COMPONENT paceline-cc DESTINATION "${plugin_cmake}")
install(FILES "${plugin_made}/paceline-cc.pc" COMPONENT paceline-cc
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

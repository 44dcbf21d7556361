# Everything where Debian expects it, for `cmake --install BUILD [--component NAME] [--prefix WHERE]`:
#
#   paceline-tools     bin/paceline; share/paceline: scenarios, experiments, testbeds, presets, the league
#   paceline-service   bin/paceline-dataplane, bin/pacelined, their units, pacelined.toml; bin/paceline-rank
#   paceline-verbs     PACELINE_LIBRARIES: what `paceline exec` loads into programs
#   paceline-doc       share/doc/paceline, laid out as the source tree is, so that links lead on: README.md, docs, configs
#   paceline-cc        what plug-ins are built against (PacelinePluginPackage.cmake)
#
# Programs find the rest relative to where they are, so an installation can be moved.
include(GNUInstallDirs)

# Libraries of one architecture stand apart from those of others, as in Debian, whatever the prefix.
set(PACELINE_LIBRARIES "lib/paceline")
if(CMAKE_LIBRARY_ARCHITECTURE)
  set(PACELINE_LIBRARIES "lib/${CMAKE_LIBRARY_ARCHITECTURE}/paceline")
endif()

function(paceline_install)
  set(configs "${PROJECT_SOURCE_DIR}/configs")
  install(TARGETS paceline RUNTIME DESTINATION bin COMPONENT paceline-tools)
  install(DIRECTORY "${configs}/scenarios" "${configs}/experiments" "${configs}/sweeps" "${configs}/testbeds" "${configs}/presets"
    DESTINATION share/paceline COMPONENT paceline-tools)
  install(FILES "${configs}/league.toml" DESTINATION share/paceline COMPONENT paceline-tools)

  install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION share/doc/paceline COMPONENT paceline-doc)
  foreach(page README CHANGELOG CONTRIBUTING SECURITY)
    install(FILES "${PROJECT_SOURCE_DIR}/${page}.md" DESTINATION share/doc/paceline COMPONENT paceline-doc)
  endforeach()
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION share/doc/paceline COMPONENT paceline-doc)
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/installed")
  file(CREATE_LINK ../../paceline "${PROJECT_BINARY_DIR}/installed/configs" SYMBOLIC)
  install(FILES "${PROJECT_BINARY_DIR}/installed/configs" DESTINATION share/doc/paceline COMPONENT paceline-doc)
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" RENAME copyright
    DESTINATION share/doc/paceline COMPONENT paceline-doc)
  if(PACELINE_EMULATOR_ONLY)
    return()
  endif()

  install(TARGETS paceline-dataplane pacelined RUNTIME DESTINATION bin COMPONENT paceline-service)
  install(FILES "${configs}/pacelined.toml" DESTINATION share/paceline COMPONENT paceline-service)
  install(DIRECTORY "${configs}/systemd/" DESTINATION lib/systemd/system COMPONENT paceline-service)
  install(DIRECTORY "${configs}/prometheus" "${configs}/grafana"
    DESTINATION share/doc/paceline/examples COMPONENT paceline-service)

  if(TARGET paceline-rank)
    install(TARGETS paceline-rank RUNTIME DESTINATION bin COMPONENT paceline-service)
  endif()
  foreach(library paceline_verbs_preload paceline_files)
    if(TARGET ${library})
      install(TARGETS ${library} LIBRARY DESTINATION "${PACELINE_LIBRARIES}" COMPONENT paceline-verbs)
    endif()
  endforeach()
  if(TARGET paceline_verbs_drop_in)
    install(TARGETS paceline_verbs_drop_in LIBRARY
      DESTINATION "${PACELINE_LIBRARIES}/drop-in" COMPONENT paceline-verbs)
    install(FILES "${PROJECT_BINARY_DIR}/lib/drop-in/libibverbs.so"
      DESTINATION "${PACELINE_LIBRARIES}/drop-in" COMPONENT paceline-verbs)
  endif()
endfunction()

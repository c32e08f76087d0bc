# What `cmake --install` puts in place: program, library, headers, CMake package, manual pages and
# the completion of shells.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The library as others find it: heddle::heddle, which is all layers.
get_property(layers GLOBAL PROPERTY heddle_library_layers)
add_library(heddle_library INTERFACE)
set_target_properties(heddle_library PROPERTIES EXPORT_NAME heddle)
set(layer_targets heddle_options)
foreach(layer IN LISTS layers)
  target_link_libraries(heddle_library INTERFACE heddle_${layer})
  set_target_properties(heddle_${layer} PROPERTIES EXPORT_NAME ${layer})
  list(APPEND layer_targets heddle_${layer})
  if(IS_DIRECTORY ${CMAKE_SOURCE_DIR}/heddle/${layer})  # of corpora/ the library alone
    install(DIRECTORY heddle/${layer} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/heddle
            FILES_MATCHING PATTERN "*.h" PATTERN cpu EXCLUDE PATTERN cuda EXCLUDE)
  endif()
endforeach()
set_target_properties(heddle_options PROPERTIES EXPORT_NAME options)

install(TARGETS heddle RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET heddle-mpi)
  install(TARGETS heddle-mpi LIBRARY DESTINATION lib)
endif()
install(TARGETS heddle_library ${layer_targets} EXPORT heddleTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/heddle)
configure_package_config_file(cmake/heddleConfig.cmake.in
                              ${CMAKE_BINARY_DIR}/heddleConfig.cmake INSTALL_DESTINATION ${package})
# 0.x promises nothing from one minor version to the next.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/heddleConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(EXPORT heddleTargets NAMESPACE heddle:: DESTINATION ${package})
install(FILES ${CMAKE_BINARY_DIR}/heddleConfig.cmake ${CMAKE_BINARY_DIR}/heddleConfigVersion.cmake
        DESTINATION ${package})

# Written by the program itself, so they are what it does.
set(share ${CMAKE_BINARY_DIR}/share)
add_custom_command(
  OUTPUT ${share}/written
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${share}/man1
  COMMAND ${CMAKE_COMMAND} -E make_directory ${share}
  COMMAND heddle manual --out ${share}/man1
  COMMAND heddle completion bash > ${share}/heddle.bash
  COMMAND heddle completion zsh > ${share}/heddle.zsh
  COMMAND heddle completion fish > ${share}/heddle.fish
  COMMAND ${CMAKE_COMMAND} -E touch ${share}/written
  DEPENDS heddle VERBATIM COMMENT "Writing the manual pages and completions")
add_custom_target(heddle_share ALL DEPENDS ${share}/written)
install(DIRECTORY ${share}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
set(data ${CMAKE_INSTALL_DATADIR})
install(FILES ${share}/heddle.bash DESTINATION ${data}/bash-completion/completions RENAME heddle)
install(FILES ${share}/heddle.zsh DESTINATION ${data}/zsh/site-functions RENAME _heddle)
install(FILES ${share}/heddle.fish DESTINATION ${data}/fish/vendor_completions.d)

# What `cmake --install` lays down, and the package that find_package(Brigade) reads.
include(CMakePackageConfigHelpers)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Brigade)

set(installed_targets brigade_comm)
if(BRIGADE_WITH_TORCH)
  list(APPEND installed_targets brigade brigade_cli)
endif()
install(
  TARGETS ${installed_targets}
  EXPORT BrigadeTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/brigade DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT BrigadeTargets NAMESPACE Brigade:: DESTINATION ${config_folder})

configure_package_config_file(cmake/BrigadeConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/BrigadeConfig.cmake
                              INSTALL_DESTINATION ${config_folder})
# Before 1.0 any minor version may change the interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/BrigadeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/BrigadeConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/BrigadeConfigVersion.cmake
        DESTINATION ${config_folder})

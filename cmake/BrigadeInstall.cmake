# What `cmake --install` lays down, and the package that find_package(Brigade) reads.
include(CMakePackageConfigHelpers)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Brigade)

# One export set a component, so that comm can be found where torch is not.
function(brigade_install_component name)
  install(
    TARGETS ${ARGN}
    EXPORT BrigadeTargets-${name}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT BrigadeTargets-${name} NAMESPACE Brigade:: DESTINATION ${config_folder})
endfunction()

brigade_install_component(comm brigade_comm)
if(BRIGADE_WITH_TORCH)
  brigade_install_component(brigade brigade brigade_cli)
  install(DIRECTORY include/brigade DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
else()
  install(
    DIRECTORY include/brigade/base include/brigade/comm include/brigade/tree
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/brigade
    PATTERN tree.h EXCLUDE)  # the header of tree that knows tensors
endif()

configure_package_config_file(cmake/BrigadeConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/BrigadeConfig.cmake
                              INSTALL_DESTINATION ${config_folder})
# Before 1.0 any minor version may change the interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/BrigadeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/BrigadeConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/BrigadeConfigVersion.cmake
        DESTINATION ${config_folder})

# How our own targets are compiled: one place for flags, so that the same source gives the same bits everywhere.

add_library(brigade_flags INTERFACE)
target_compile_features(brigade_flags INTERFACE cxx_std_20)
target_compile_options(
  brigade_flags
  INTERFACE -ffp-contract=off  # a*b+c rounds twice on every processor; GCC would fuse it where it can
            -Wall
            -Wextra
            -Wshadow
            -Wnon-virtual-dtor
            $<$<BOOL:${BRIGADE_WARNINGS_AS_ERRORS}>:-Werror>)
if(BRIGADE_SANITIZE)
  # GCC sees false paths through the checks it inserts, and its manual advises against -Werror with them.
  target_compile_options(brigade_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-error>)
  target_compile_options(brigade_flags INTERFACE -fsanitize=${BRIGADE_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all)
  target_link_options(brigade_flags INTERFACE -fsanitize=${BRIGADE_SANITIZE})
endif()

# libtorch and Boost.PFR as targets link them; their headers are not ours, so their warnings do not count.
if(BRIGADE_WITH_TORCH)
  add_library(brigade_torch INTERFACE)
  target_link_libraries(brigade_torch INTERFACE torch)
  target_include_directories(brigade_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS} ${BRIGADE_PFR_INCLUDE_DIR})
endif()

# Torch's headers take 15 s to parse; one precompiled header serves every target that includes them.
if(BRIGADE_WITH_TORCH)
  add_library(brigade_pch OBJECT ${CMAKE_CURRENT_SOURCE_DIR}/cmake/pch.cpp)
  target_link_libraries(brigade_pch PRIVATE brigade_flags brigade_torch)
  set_target_properties(brigade_pch PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(brigade_pch PRIVATE -fPIC)
  target_precompile_headers(brigade_pch PRIVATE <torch/torch.h> <vector> <string>)
endif()

# brigade_own(target [TORCH]): our flags, and the shared precompiled header for targets that include torch.
function(brigade_own target)
  cmake_parse_arguments(ARG "TORCH" "" "" ${ARGN})
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:brigade_flags>)
  # Spelled out, as CMake gives programs -fPIE, and a precompiled header serves one of the two only.
  target_compile_options(${target} PRIVATE -fPIC)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  if(ARG_TORCH)
    target_precompile_headers(${target} REUSE_FROM brigade_pch)
  endif()
endfunction()

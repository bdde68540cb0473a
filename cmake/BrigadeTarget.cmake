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
                                                 -fno-sanitize-recover=all -g1)  # lines and functions, for the trace
  target_link_options(brigade_flags INTERFACE -fsanitize=${BRIGADE_SANITIZE})
  # Kernels for fewer instruction sets, as they take the compiler minutes with checks in them. All are tested without.
  target_compile_definitions(brigade_flags INTERFACE "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL)")
endif()

# libtorch and Boost.PFR as targets link them; their headers are not ours, so their warnings do not count.
if(BRIGADE_WITH_TORCH)
  add_library(brigade_torch INTERFACE)
  target_link_libraries(brigade_torch INTERFACE torch)
  target_include_directories(brigade_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS} ${BRIGADE_PFR_INCLUDE_DIR})
endif()

# A precompiled header serves every target that names the same set of headers. torch/torch.h is in none: what its inline
# functions use is instantiated again in every file, which takes twice as long as the headers of tensors and gradients.
set(BRIGADE_TORCH_HEADERS <torch/types.h> <torch/csrc/autograd/autograd.h> <torch/csrc/autograd/custom_function.h>)

# brigade_own(target [PRECOMPILED name]): our flags, and the headers that brigade_precompiled(name) compiled.
function(brigade_own target)
  cmake_parse_arguments(ARG "" "PRECOMPILED" "" ${ARGN})
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:brigade_flags>)
  # Spelled out, as CMake gives programs -fPIE, and a precompiled header serves one of the two only.
  target_compile_options(${target} PRIVATE -fPIC)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  if(ARG_PRECOMPILED)
    target_precompile_headers(${target} REUSE_FROM ${ARG_PRECOMPILED})
  endif()
endfunction()

# brigade_precompiled(name LIBRARIES lib ... HEADERS header ... [OPTIONS option ...])
function(brigade_precompiled name)
  cmake_parse_arguments(ARG "" "" "LIBRARIES;HEADERS;OPTIONS" ${ARGN})
  add_library(${name} OBJECT ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  brigade_own(${name})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

if(BRIGADE_WITH_TORCH)
  brigade_precompiled(brigade_pch LIBRARIES brigade_torch HEADERS ${BRIGADE_TORCH_HEADERS})
endif()

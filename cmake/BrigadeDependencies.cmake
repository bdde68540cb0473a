# Finds what Brigade needs and says, for each thing that is missing, which package brings it.

# A macro, as packages hand over variables besides targets.
macro(brigade_find package debian)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "Brigade needs ${package}. On Debian: apt-get install ${debian} (or run scripts/setup.sh). "
                        "Elsewhere: install it and name its prefix with -DCMAKE_PREFIX_PATH=...")
  endif()
endmacro()

set(THREADS_PREFER_PTHREAD_FLAG ON)
brigade_find(Threads libc6-dev)
brigade_find(fmt libfmt-dev)
brigade_find(spdlog libspdlog-dev)

brigade_find(hwy libhwy-dev CONFIG)
brigade_find(ZLIB zlib1g-dev)
brigade_find(nlohmann_json nlohmann-json3-dev)

find_path(BRIGADE_XXHASH_INCLUDE_DIR xxhash.h)
if(NOT BRIGADE_XXHASH_INCLUDE_DIR)
  message(FATAL_ERROR "Brigade needs xxHash (xxhash.h). On Debian: apt-get install libxxhash-dev (or run scripts/setup.sh). "
                      "Elsewhere: name its prefix with -DCMAKE_PREFIX_PATH=...")
endif()

if(BRIGADE_WITH_IMAGES)
  brigade_find(PNG "libpng-dev, or configure with -DBRIGADE_WITH_IMAGES=OFF")
  brigade_find(JPEG "libjpeg62-turbo-dev, or configure with -DBRIGADE_WITH_IMAGES=OFF")
endif()

if(BRIGADE_WITH_TORCH)
  brigade_find(Torch libtorch-dev)
  # Every compiler brings its own.
  set(openmp_debian libgomp1)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    string(REGEX MATCH "^[0-9]+" clang_major "${CMAKE_CXX_COMPILER_VERSION}")
    set(openmp_debian libomp-${clang_major}-dev)
  endif()
  brigade_find(OpenMP ${openmp_debian} COMPONENTS CXX)
  brigade_find(CLI11 libcli11-dev)
  find_path(BRIGADE_PFR_INCLUDE_DIR boost/pfr.hpp)
  if(NOT BRIGADE_PFR_INCLUDE_DIR)
    message(FATAL_ERROR "Brigade needs Boost.PFR (boost/pfr.hpp, Boost 1.75 or newer). On Debian: apt-get install "
                        "libboost1.81-dev (or run scripts/setup.sh). Elsewhere: name its prefix with -DCMAKE_PREFIX_PATH=...")
  endif()
endif()

if(BRIGADE_BUILD_TESTS)
  brigade_find(GTest "libgtest-dev libgmock-dev")
  brigade_find(CLI11 libcli11-dev)
  find_path(RAPIDCHECK_INCLUDE_DIR rapidcheck.h)
  find_library(RAPIDCHECK_LIBRARY rapidcheck)
  if(NOT RAPIDCHECK_INCLUDE_DIR OR NOT RAPIDCHECK_LIBRARY)
    message(FATAL_ERROR "Brigade's tests need RapidCheck. On Debian: apt-get install librapidcheck-dev (or run "
                        "scripts/setup.sh). Or build without tests: -DBRIGADE_BUILD_TESTS=OFF")
  endif()
endif()

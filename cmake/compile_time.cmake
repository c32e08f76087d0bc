# What keeps the build short: how far a target is optimised, and headers read once for many files.
# What each gives is measured in docs/contributing.md, "Build times".

# Optimises a target at LEVEL in the release build, instead of CMake's -O3.
function(heddle_optimise target level)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>)
endfunction()

# Headers that most files include and that seldom change: a change of one rebuilds what uses it.
# Named with <>, so that the list reads the same wherever the tree lies (a compiler cache needs that).
set(headers_of_all
    <algorithm> <array> <chrono> <cmath> <cstdint> <cstdio> <cstring> <functional> <limits> <map>
    <memory> <numeric> <optional> <set> <span> <string> <string_view> <unordered_map> <utility>
    <variant> <vector> <fmt/format.h> <heddle/base/error.h>)
set(headers_of_tensors
    ${headers_of_all} <filesystem> <heddle/base/json/json.h> <heddle/base/json/fields.h>
    <heddle/base/parallel.h> <heddle/tensor/tensor.h> <heddle/autograd/tape.h>)

# heddle_precompile(TARGET HEADERS... [USED_BY LAYERS...]): for TARGET and for other layers that are
# compiled with the same definitions. Files still include what they use (-DHEDDLE_PCH=OFF).
function(heddle_precompile target)
  if(NOT HEDDLE_PCH)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "USED_BY" ${ARGN})
  target_precompile_headers(${target} PRIVATE ${ARG_UNPARSED_ARGUMENTS})
  foreach(layer IN LISTS ARG_USED_BY)
    target_precompile_headers(heddle_${layer} REUSE_FROM ${target})
  endforeach()
endfunction()

if(HEDDLE_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # ccache can follow a precompiled header of GCC only so.
  target_compile_options(heddle_options INTERFACE $<BUILD_INTERFACE:-fpch-preprocess>)
endif()

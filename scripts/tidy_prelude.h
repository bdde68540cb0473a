// Included first in every file by scripts/check_tidy.sh. Headers of torch 1.13 name std::vector<T> for a T that is still
// incomplete; Clang instantiates constexpr members at once, as GCC does not, and stops there. So <vector> has none here.
#pragma once

#include <memory>
#include <string>

#pragma push_macro("_GLIBCXX20_CONSTEXPR")
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#define __fill_a1 __fill_a1_of_bits  // declared constexpr by then, for the bits of std::vector<bool>
#include <vector>
#undef __fill_a1
#pragma pop_macro("_GLIBCXX20_CONSTEXPR")

#include <c10/util/C++17.h>  // FunctionRef.h uses it without including it

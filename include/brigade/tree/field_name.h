// Names of the fields of an aggregate, for messages.
//
// Boost.PFR 1.81 has none. GCC prints a pointer to a member of an extern object, when it is a template argument, with
// the member's name, so the name is cut out of the function's own signature. Elsewhere names are empty and messages
// show indices.
#pragma once

#include <boost/pfr/core.hpp>
#include <cstddef>
#include <string_view>

namespace brigade::tree::detail {

#if defined(__GNUC__) && !defined(__clang__)

template <class T>
struct Wrapper {
  T value;
};
template <class T>
extern const Wrapper<T> external;  // never defined, never read: only the address of a member is named

template <auto Pointer>
constexpr std::string_view signature() {
  return __PRETTY_FUNCTION__;
}

template <class T, std::size_t I>
constexpr const auto* member_pointer() {
  return &boost::pfr::get<I>(external<T>.value);
}

// "... [with auto Pointer = (& external<P>.Wrapper<P>::value.P::w1); std::string_view = ...]" -> "w1"
template <class T, std::size_t I>
constexpr std::string_view field_name() {
  constexpr std::string_view text = signature<member_pointer<T, I>()>();
  constexpr std::size_t end = text.find(");");
  if constexpr (end == std::string_view::npos) {
    return {};
  } else {
    constexpr std::size_t colon = text.rfind("::", end);
    return colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 2, end - colon - 2);
  }
}

#else

template <class T, std::size_t I>
constexpr std::string_view field_name() {
  return {};
}

#endif

}  // namespace brigade::tree::detail

// Errors as types. Every message names what was wrong, where, and what to do next.
//
// A caller who can recover catches a type; a person reads what(), which ends with the context that is known: argument
// path, axis, device and call site.
#pragma once

#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace brigade {

// Where an error belongs. Fields that are not known stay empty and are left out of the message.
struct ErrorContext {
  std::string argument = {};       // path within the arguments, such as `[0].w1`
  std::string axis = {};           // name of the pmap axis
  std::optional<int> device = {};  // position along the axis
  std::optional<std::source_location> site = {};
};

class Error : public std::runtime_error {
 public:
  explicit Error(std::string_view message, ErrorContext context = {});

  const ErrorContext& context() const noexcept { return context_; }

  // what() without its context, for whoever knows more of that and throws again.
  std::string_view message() const noexcept { return {what(), message_size_}; }

 private:
  ErrorContext context_;
  std::size_t message_size_;
};

// A value that the caller passed cannot be used: a device count, an option, an empty list.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

// Sizes, ranks or dtypes of tensors do not fit together.
class ShapeError : public Error {
 public:
  using Error::Error;
};

// Trees that must have one structure do not.
class TreeError : public Error {
 public:
  using Error::Error;
};

// An axis name that is not in scope, or a pmap inside a pmap.
class AxisError : public Error {
 public:
  using Error::Error;
};

// Participants of one collective called different things. Thrown on every participant.
class CollectiveMismatch : public Error {
 public:
  explicit CollectiveMismatch(std::string_view message, ErrorContext context = {},
                              std::optional<std::size_t> piece = {})
      : Error(message, std::move(context)), piece_(piece) {}

  // The number of the tensor, among those of the call, that the participants gave differently; none when it is something
  // else that differs.
  std::optional<std::size_t> piece() const noexcept { return piece_; }

 private:
  std::optional<std::size_t> piece_;
};

// Another participant failed; this one was released. Never the primary cause.
class Aborted : public Error {
 public:
  using Error::Error;
};

// A participant did not arrive in time.
class DeadlineExceeded : public Error {
 public:
  using Error::Error;
};

// An environment variable holds something that cannot be used.
class EnvironmentError : public Error {
 public:
  using Error::Error;
};

// A file is missing, corrupt or does not belong to the others.
class DataError : public Error {
 public:
  using Error::Error;
};

// A loss or gradient is NaN or infinite.
class NonFiniteError : public Error {
 public:
  using Error::Error;
};

// Replicas, or what they were at the end of a step, are no longer equal: memory was changed by no step.
class DriftError : public Error {
 public:
  using Error::Error;
};

// `"a", "b" and "c"`: for messages that list what there is.
std::string quoted_list(const std::vector<std::string>& names);

// The candidate closest to `name` by edit distance, when it is close enough to be what was meant; else empty.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

// "file.cpp:12", the file without its folders.
std::string to_string(const std::source_location& site);

}  // namespace brigade

// Pieces of a message: numbers at any address, one after the other; and what is wrong with one.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

namespace brigade::comm {

// Values [index, index + values.size()) of an array of T that begins where `message` does.
template <class T>
void read(std::span<const std::byte> message, std::size_t index, std::span<T> values) {
  if (!values.empty()) std::memcpy(values.data(), message.data() + index * sizeof(T), values.size_bytes());
}
template <class T>
T read_one(std::span<const std::byte> message, std::size_t index) {
  T value;
  std::memcpy(&value, message.data() + index * sizeof(T), sizeof value);
  return value;
}

template <class T>
void write(std::span<std::byte> message, std::size_t index, std::span<const T> values) {
  if (!values.empty()) std::memcpy(message.data() + index * sizeof(T), values.data(), values.size_bytes());
}
template <class T>
void write_one(std::span<std::byte> message, std::size_t index, T value) {
  std::memcpy(message.data() + index * sizeof(T), &value, sizeof value);
}

constexpr std::size_t parts_of(std::size_t count, std::size_t part) {
  return count / part + (count % part != 0 ? 1 : 0);
}

// DataError: "the int8 message is damaged: block 3 has the scale -1".
[[noreturn]] void throw_damaged(std::string_view codec, std::string_view what);

// Throws InvalidArgument unless blocks of so many numbers are a multiple of kGroup.
void check_block(std::string_view codec, std::size_t block);

// Blocks are made of whole groups, which every instruction set takes in whole vectors. A group of one bit each is a 64-bit word.
inline constexpr std::size_t kGroup = 64;

}  // namespace brigade::comm

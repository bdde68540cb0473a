// What readers and writers of files have in common.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace brigade::data {

// Takes bytes in order. What it throws leaves whoever feeds it.
using ByteSink = std::function<void(std::span<const std::byte>)>;

// What to do when the file to be read is a symbolic link. Links among the folders that lead to it are followed.
enum class SymbolicLinks { kFollow, kRefuse };

}  // namespace brigade::data

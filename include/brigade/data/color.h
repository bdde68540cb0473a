// What of an image's colours is kept.
#pragma once

namespace brigade::data {

enum class Color {
  kRgb,   // three channels: red, green, blue
  kGrey,  // one: 0.299 red + 0.587 green + 0.114 blue, as JPEG and most programs weigh them (ITU-R BT.601)
};

}  // namespace brigade::data

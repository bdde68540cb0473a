#include "network.h"

#include <c10/util/accumulate.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "brigade/base/error.h"

namespace brigade::cli {

std::int64_t DataShape::numbers() const { return c10::multiply_integers(row); }

ImageShape image_shape(const DataShape& shape, const char* model, std::int64_t smallest) {
  const std::size_t axes = shape.row.size();
  if (axes != 2 && axes != 3) {
    throw InvalidArgument(fmt::format("{} is a network for images, and the rows of this data are {}: try --model mlp",
                                      model, fmt::join(shape.row, " x ")));
  }
  const ImageShape image{
      .channels = axes == 3 ? shape.row[0] : 1, .height = shape.row[axes - 2], .width = shape.row[axes - 1]};
  if (image.height < smallest || image.width < smallest) {
    throw InvalidArgument(fmt::format("{} takes images of {} x {} and more, and these are {} x {}: try --model mlp",
                                      model, smallest, smallest, image.height, image.width));
  }
  return image;
}

}  // namespace brigade::cli

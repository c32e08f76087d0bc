// How a camera was held: pictures as viewers show them.
#pragma once

#include "heddle/vision/image.h"

namespace heddle {

/// The orientation in the EXIF data of a JPEG or PNG file, 1 to 8: how its rows and columns are to
/// be turned. 1, as they are, for other bytes, and where it does not say or its data are damaged.
/// Source: CIPA DC-008 (EXIF 2.32), section 4.6.4 A; TIFF 6.0, section 2.
int exif_orientation(std::span<const std::byte> file);

/// The image turned: 2 left to right, 3 by half, 4 upside down, 5 along its diagonal, 6 by a
/// quarter to the right, 7 along the other diagonal, 8 by a quarter to the left; else as it is.
Image turned(Image image, int orientation);
/// The size of an image of this size then.
ImageSize turned(ImageSize image, int orientation);

/// decode_image(), turned as its EXIF data say: what Pillow's ImageOps.exif_transpose() gives, as
/// transformers' pipelines have it. Images of datasets are read as they lie in their files, as by
/// torchvision and pycocotools: their boxes are of these.
Image upright_image(std::span<const std::byte> file, const std::string& name);
Image read_upright_image(const std::string& path);

}  // namespace heddle

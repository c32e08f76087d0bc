// Operations by the names that torchvision has for them.
#pragma once

#include <map>
#include <string>

#include "heddle/vision/image_ops.h"

namespace heddle::testing {

inline ImageOp op_named(const std::string& name) {
  using enum ImageOp;
  static const std::map<std::string, ImageOp> ops = {{"Identity", identity},
                                                     {"ShearX", shear_x},
                                                     {"ShearY", shear_y},
                                                     {"TranslateX", translate_x},
                                                     {"TranslateY", translate_y},
                                                     {"Rotate", rotate},
                                                     {"Brightness", brightness},
                                                     {"Color", color},
                                                     {"Contrast", contrast},
                                                     {"Sharpness", sharpness},
                                                     {"Posterize", posterize},
                                                     {"Solarize", solarize},
                                                     {"AutoContrast", auto_contrast},
                                                     {"Equalize", equalize},
                                                     {"Invert", invert}};
  return ops.at(name);
}

}  // namespace heddle::testing

// Policies of augmentation: which operations are applied to an image, how often and how strongly.
#pragma once

#include "heddle/base/rng.h"
#include "heddle/tensor/image_size.h"
#include "heddle/vision/image_ops.h"

namespace heddle {

/// The steps that lie between an operation's least and greatest magnitude, and how far it goes.
struct MagnitudeScale {
  int64_t levels = 31;
  bool is_wide = false;  ///< as TrivialAugmentWide has it
};

/// The magnitude of an operation at a level, 0 to levels - 1, for an image of the size, without its
/// sign. Torchvision's is the same in f32, whose last bit depends on the processor: on some its
/// TrivialAugment moves images by 15 pixels where it means 16.
double magnitude_at(ImageOp op, int64_t level, MagnitudeScale scale, ImageSize size);
/// Whether a magnitude may as well be negative: to the left, upwards, darker, ..
bool is_signed(ImageOp op);

/// Applies `count` of the 14 operations (all but invert), each drawn anew, at a level of 31.
/// Source: Cubuk et al. 2019, "RandAugment".
void rand_augment(Image& image, int64_t count, int64_t level, Rgb fill, RngStream& random);

/// Applies one of these, at a level that is drawn. Source: Müller and Hutter 2021,
/// "TrivialAugment".
void trivial_augment(Image& image, Rgb fill, RngStream& random);

/// A step of a sub-policy: applied with a probability, at a level of 10.
struct PolicyStep {
  ImageOp op;
  double probability;
  int64_t level;  ///< -1: the operation has no magnitude
};
/// The 25 sub-policies that were found for CIFAR-10, each of two steps. Source: Cubuk et al. 2019,
/// "AutoAugment", as torchvision has them.
using CifarPolicy = std::array<std::array<PolicyStep, 2>, 25>;
const CifarPolicy& cifar10_policy();

/// Applies one of these.
void cifar10_augment(Image& image, Rgb fill, RngStream& random);

}  // namespace heddle

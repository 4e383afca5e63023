#pragma once
#include "image.h"

// Blurs with a square of 2 radius + 1 pixels.
Image blurOnDevice(const Image& image, int radius);

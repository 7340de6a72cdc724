/* image.h -- carrel-init itself, as carrel carries it. */
#pragma once
#include <stddef.h>
extern const unsigned char init_image[];
extern const size_t init_image_len;

/* image.h -- carrel-files itself, as carreld carries it. */
#pragma once
#include <stddef.h>
extern const unsigned char agent_image[];
extern const size_t agent_image_len;

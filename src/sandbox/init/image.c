#include "sandbox/init/image.h"

const unsigned char init_image[] = {
#include "sandbox/init/image.inc"
};
const size_t init_image_len = sizeof init_image;

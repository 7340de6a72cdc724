#include "sandbox/files/image.h"

const unsigned char file_server_image[] = {
#include "sandbox/files/image.inc"
};
const size_t file_server_image_len = sizeof file_server_image;

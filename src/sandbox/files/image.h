/* image.h -- carrel-files itself, as carreld carries it. */
#pragma once
extern const unsigned char file_server_image[];
extern const size_t file_server_image_len;

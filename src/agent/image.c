#include "agent/image.h"

const unsigned char agent_image[] = {
#include "agent/agent.inc"
};
const size_t agent_image_len = sizeof agent_image;

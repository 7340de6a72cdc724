#include "core/shipped.h"

static const char data_science[] = {
#include "core/data-science.inc"
};
static const char plain[] = {
#include "core/default.inc"
};
static const char minimal[] = {
#include "core/minimal.inc"
};
static const char strict[] = {
#include "core/strict.inc"
};
static const char web_dev[] = {
#include "core/web-dev.inc"
};

const struct shipped_template shipped_templates[] = {
	{ "data-science", data_science, sizeof data_science },
	{ "default", plain, sizeof plain },
	{ "minimal", minimal, sizeof minimal },
	{ "strict", strict, sizeof strict },
	{ "web-dev", web_dev, sizeof web_dev },
	{ 0 },
};

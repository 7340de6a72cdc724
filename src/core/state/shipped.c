#include "core/state/shipped.h"

static const char data_science[] = {
#include "core/state/data-science.inc"
};
static const char plain[] = {
#include "core/state/default.inc"
};
static const char minimal[] = {
#include "core/state/minimal.inc"
};
static const char strict[] = {
#include "core/state/strict.inc"
};
static const char web_dev[] = {
#include "core/state/web-dev.inc"
};

const struct shipped_template shipped_templates[] = {
	{ "data-science", data_science, sizeof data_science },
	{ "default", plain, sizeof plain },
	{ "minimal", minimal, sizeof minimal },
	{ "strict", strict, sizeof strict },
	{ "web-dev", web_dev, sizeof web_dev },
	{ 0 },
};

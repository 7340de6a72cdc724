/* shape_rows.h -- the tables of known shapes. */
#pragma once
#include "policy/shapes.h"

extern const struct shape shape_rows[], shape_git_rows[];
extern const size_t shape_row_count, shape_git_row_count;

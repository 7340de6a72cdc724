/* signals.h -- the names of signals that a client may send: "INT" and "SIGINT" alike. */
#pragma once
#include "model/records/record.h"

extern const struct field_choice signal_choices[];

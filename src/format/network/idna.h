/* idna.h -- labels of host names that are written in other letters, as A-labels (RFC 3492, 5891).
 * Pure. Only letters whose A-label is the same by every standard: of Latin, Greek, Cyrillic,
 * Chinese, Japanese and Korean, composed, in either case. Others have to be written as A-labels. */
#pragma once
#include "base/str.h"

#define IDNA_LABEL_SIZE 64 /* of an A-label with its NUL */

/* `label`: UTF-8, without dots. false: it has no A-label here, or a long one. */
bool idna_encode(struct str label, char out[IDNA_LABEL_SIZE]);

/* webhook.h -- the signature of a webhook call, as its receiver checks it. Pure.
 *	Carrel-Signature: t=UNIX_SECONDS,v1=HEX
 * HEX is HMAC-SHA256, with the operator's secret, of "UNIX_SECONDS.BODY": a receiver that refuses
 * old times also refuses calls that are sent again by somebody else. */
#pragma once
#include "base/arena.h"
#include "base/str.h"

#define WEBHOOK_SECRET_LEAST 16
#define WEBHOOK_SECRET_MOST 4096
#define WEBHOOK_HEADER "Carrel-Signature"
/* The value of the header; in the arena. */
const char *webhook_signature(
	struct str secret, int64_t unix_s, struct str body, struct arena *arena);

/* sigv4.h -- signs HTTP requests by AWS Signature Version 4, for S3. Pure. */
#pragma once
#include "base/arena.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/vec.h"

#define SIGV4_TIME_SIZE 17 /* "20130524T000000Z" and NUL */

struct sigv4_request {
	const char *method;
	const char *path;	    /* as sent: percent-encoded */
	const char *query;	    /* as sent: sigv4_query made it */
	pair_list headers;	    /* to be signed: names in lower case, values trimmed */
	const char *payload_sha256; /* hex; also the value of x-amz-content-sha256 */
	const char *time;	    /* also the value of x-amz-date */
	const char *region, *service;
	const char *key_id, *secret;
};
void hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
	unsigned char out[SHA256_LEN]);
/* "20130524T000000Z", in UTC. */
void sigv4_time(int64_t unix_s, char out[SIGV4_TIME_SIZE]);
/* The parameters, sorted and encoded, as a request sends and signs them. */
const char *sigv4_query(const pair_list *parameters, struct arena *arena);
/* The value of the header Authorization. */
const char *sigv4_authorization(const struct sigv4_request *request, struct arena *arena);

/* token.h -- the text of an access token. Pure.
 *	crl_ 52 characters of 260 random bits, 6 characters of a checksum
 * The prefix lets scanners for leaked secrets find it. The checksum tells a token that was cut or
 * mistyped from one that is unknown. Only the SHA-256 of the text is ever stored. */
#pragma once
#include "base/hash.h"
#include "base/str.h"

#define TOKEN_PREFIX "crl_"
#define TOKEN_RANDOM_BYTES 33
#define TOKEN_RANDOM_LEN 52
#define TOKEN_CHECK_LEN 6
#define TOKEN_LEN (sizeof TOKEN_PREFIX - 1 + TOKEN_RANDOM_LEN + TOKEN_CHECK_LEN)

void token_print(const unsigned char random[TOKEN_RANDOM_BYTES], char out[TOKEN_LEN + 1]);
/* Whether the text has the form of a token and its checksum fits. */
bool token_is_whole(struct str text);
/* The value of an Authorization header: the token of "Bearer TOKEN"; data NULL: another scheme, or
 * no token. */
struct str token_of_header(struct str value);

/* redact.h -- secrets left out of what is recorded. Pure.
 * Works on JSON text, and what comes out is JSON of the same shape. Replaced by ***:
 * 1. values of names that workspace_variable_is_secret knows: NAME=value, --name=value, a word
 * behind --name, "Name: value", and the same within a shell command;
 * 2. what follows Bearer or Basic, the login of a URL, keys of AWS, private keys, and tokens that
 * begin as those of carrel, GitHub, GitLab, npm, the Python index, Slack and OpenAI do. */
#pragma once
#include "base/buf.h"
#include "base/str.h"

void redact_json(struct str json, struct buf *out);

#include "blob/webhook.h"

#include <curl/curl.h>
#include "base/arena.h"
#include "base/clock.h"
#include "format/http/webhook.h"

#define ANSWER_MAX (64l << 10)

static size_t ignore(char *data, size_t size, size_t count, void *ctx)
{
	size_t *seen = ctx;
	*seen += size * count;
	return *seen > ANSWER_MAX ? 0 : size * count;
}

int webhook_post(const char *url, struct str secret, struct str body, uint64_t timeout_ms,
	long *status, struct error *err)
{
	auto_arena struct arena arena = { 0 };
	struct curl_slist *lines = NULL;
	size_t seen = 0;
	CURL *curl = curl_easy_init();
	if (!curl)
		return fail(err, ERR_FAILED, "libcurl can't be used");
	lines = curl_slist_append(lines, "Content-Type: application/json");
	lines = curl_slist_append(lines, "User-Agent: carrel");
	lines = curl_slist_append(lines, "Expect:");
	lines = curl_slist_append(
		lines, arena_printf(&arena, WEBHOOK_HEADER ": %s",
			       webhook_signature(secret, clock_now_ms() / 1000, body, &arena)));
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1l);
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0l);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1l);
	curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2l);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.len);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ignore);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &seen);
	CURLcode code = curl_easy_perform(curl);
	/* A status is an answer, also when the rest of it is too long or is cut off. */
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
	curl_slist_free_all(lines);
	curl_easy_cleanup(curl);
	if (code && code != CURLE_WRITE_ERROR)
		return fail_hint(err, ERR_UNAVAILABLE,
			"check approvals.webhook in config.yaml, and the network",
			"the webhook could not be reached or broke off: %s",
			curl_easy_strerror(code));
	return 0;
}

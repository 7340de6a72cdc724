/* Answers to a health check over HTTP/2: what is judged stays so when more bytes come, unless they
 * are no HTTP/2. */
#include "format/http/grpc_health.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum grpc_health whole = GRPC_HEALTH_MORE, half = GRPC_HEALTH_MORE;
	struct error err;
	int status = grpc_health_read((struct str){ (const char *)data, size }, &whole, &err);

	check(status == 0 || err.text[0]);
	int before = grpc_health_read((struct str){ (const char *)data, size / 2 }, &half, NULL);
	if (before)
		check(status);
	if (!before && !status && half == GRPC_HEALTH_SERVING)
		check(whole == GRPC_HEALTH_SERVING);
	return 0;
}

/* Exported environments of the blob store: env export and import without a file, env ls and rm with
 * --exported. */
#include <string.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/file.h"
#include "cli/columns.h"
#include "cli/env.h"
#include "model/archive.h"

#define PIECE ((size_t)256 << 10)

static const char *path_of(struct command *command, const char *name)
{
	return arena_printf(
		&command->arena, "/v1/exports/%s", remote_escape(&command->remote, name));
}

static void add_line(struct listing *listing, const struct json_value *item)
{
	columns_add_object(&listing->columns, &export_record, item);
}

int env_list_exported(struct command *command, struct error *err)
{
	struct listing listing = {
		.command = command, .columns = { .arena = &command->arena }, .add = add_line
	};
	columns_begin(&listing.columns, &export_record);
	return listing_print(&listing, "/v1/exports", err);
}

int env_remove_exported(struct command *command, struct error *err)
{
	cli_ones all = { 0 };
	if (remote_open(&command->remote, err))
		return -1;
	for (size_t i = 0; i < command->operands.count; i++) {
		struct cli_one one = { .name = command->operands.items[i] };
		one.has_failed = remote_call(&command->remote, "DELETE", path_of(command, one.name),
			NULL, NULL, &one.err);
		vec_push(&command->arena, &all, one);
	}
	return cli_print_ones(command, &all, "removed", 0, err);
}

int env_send(struct command *command, const char *name, int file, uint64_t *size, struct error *err)
{
	struct client_request request = CLIENT_REQUEST_NONE;
	struct client_response response;
	unsigned char hash[SHA256_LEN];
	char hex[2 * SHA256_LEN + 1];
	if (lseek(file, 0, SEEK_SET) || file_hash(file, hash, size) || lseek(file, 0, SEEK_SET))
		return fail_errno(err, "read the archive of environment '%s'", name);
	sha256_hex(hash, hex);
	if (remote_open(&command->remote, err))
		return -1;
	request.method = "PUT";
	request.path = arena_printf(&command->arena, "%s?sha256=%s", path_of(command, name), hex);
	request.content_type = "application/octet-stream";
	request.body_fd = file;
	request.body_len_known = true;
	request.body_len = *size;
	if (remote_begin(&command->remote, &request, &response, err) ||
		client_read_all(&command->remote.client, &response, &command->arena, err))
		return -1;
	return response.status >= 400
		       ? client_problem(response.status, response.body, &command->arena, err)
		       : 0;
}

int env_fetch(struct command *command, const char *name, int file, struct error *err)
{
	struct client_request request = CLIENT_REQUEST_NONE;
	struct client_response response;
	auto_free char *piece = xzalloc(PIECE);
	ssize_t got;
	if (remote_open(&command->remote, err))
		return -1;
	request.method = "GET";
	request.path = path_of(command, name);
	request.accept = "application/x-tar, application/problem+json";
	if (remote_begin(&command->remote, &request, &response, err))
		return -1;
	if (response.status >= 400)
		return client_read_all(&command->remote.client, &response, &command->arena, err)
			       ? -1
			       : client_problem(
					 response.status, response.body, &command->arena, err);
	while ((got = client_read(&command->remote.client, &response, piece, PIECE, err)) > 0)
		if (fd_write_full(file, piece, (size_t)got) != got)
			return fail_errno(err, "write environment '%s' of the blob store", name);
	if (got < 0)
		return -1;
	return lseek(file, 0, SEEK_SET) ? fail_errno(err, "read environment '%s'", name) : 0;
}

/* Exported environments of the blob store: env export and import without a file, env ls and rm with
 * --exported. */
#include <unistd.h>
#include "base/file.h"
#include "cli/columns.h"
#include "cli/environments/env.h"
#include "model/nouns/archive.h"

static const char *path_of(struct command *command, const char *name)
{
	return arena_printf(
		&command->arena, "/v1/exports/%s", remote_escape(&command->remote, name));
}

int env_list_exported(struct command *command, struct error *err)
{
	return listing_print_records(command, &export_record, "name", "/v1/exports", err);
}

int env_remove_exported(struct command *command, struct error *err)
{
	return cli_remove_ones(command, "/v1/exports", &command->operands, err);
}

int env_send(struct command *command, const char *name, int file, uint64_t *size, struct error *err)
{
	unsigned char hash[SHA256_LEN];
	char hex[2 * SHA256_LEN + 1];
	if (lseek(file, 0, SEEK_SET) || file_hash(file, hash, size) || lseek(file, 0, SEEK_SET))
		return fail_errno(err, "read the archive of environment '%s'", name);
	sha256_hex(hash, hex);
	return remote_send_file(&command->remote,
		arena_printf(&command->arena, "%s?sha256=%s", path_of(command, name), hex), file,
		*size, err);
}

int env_fetch(struct command *command, const char *name, int file, struct error *err)
{
	return remote_receive_file(&command->remote, path_of(command, name), file,
		arena_printf(&command->arena, "environment '%s' of the blob store", name), err);
}

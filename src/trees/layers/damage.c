#include "trees/layers/damage.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/str.h"

static bool is_name(const char *layer)
{
	return layer[0] && layer[0] != '.' && !strchr(layer, '/') && strlen(layer) < LAYER_NAME_MAX;
}

static void mark_path(char path[DAMAGE_PATH_MAX], const char *layer)
{
	str_format(path, DAMAGE_PATH_MAX, DAMAGE_DIRECTORY "/%s", layer);
}

bool damage_is_any(int layers)
{
	return !faccessat(layers, DAMAGE_DIRECTORY, F_OK, AT_SYMLINK_NOFOLLOW);
}

bool damage_is_marked(int layers, const char *layer)
{
	char path[DAMAGE_PATH_MAX];
	if (!is_name(layer))
		return false;
	mark_path(path, layer);
	return !faccessat(layers, path, F_OK, AT_SYMLINK_NOFOLLOW);
}

int damage_mark(int layers, const char *layer)
{
	char path[DAMAGE_PATH_MAX];
	if (!is_name(layer)) {
		errno = EINVAL;
		return -1;
	}
	if (mkdirat(layers, DAMAGE_DIRECTORY, 0700) && errno != EEXIST)
		return -1;
	mark_path(path, layer);
	auto_close int mark =
		openat(layers, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	auto_close int dir = fd_open_directory(layers, DAMAGE_DIRECTORY);
	return mark < 0 || dir < 0 || fsync(dir) || fsync(layers) ? -1 : 0;
}

void damage_clear(int layers, const char *layer)
{
	char path[DAMAGE_PATH_MAX];
	if (!is_name(layer))
		return;
	mark_path(path, layer);
	if (!unlinkat(layers, path, 0)) /* the last one takes the directory along */
		unlinkat(layers, DAMAGE_DIRECTORY, AT_REMOVEDIR);
}

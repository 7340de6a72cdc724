/* carrel-files: the file server. Static; carreld carries it, carrel-init starts it in a sandbox
 * with the socket to core as its only descriptor of use. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "sandbox/files/server.h"

int main(void)
{
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	prctl(PR_SET_NAME, "carrel-files");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* EFBIG instead */
	umask(0);
	file_server_run(STDIN_FILENO);
	return 0;
}

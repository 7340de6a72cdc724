/* carrel-build -- makes environments: resolves, fetches and unpacks in sandboxes. A program of its
 * own, so that carrel stays light. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
	return builder_main(argc, argv);
}

/* carrel -- the command line, and in it `run` and the launcher (`serve`). It links few libraries,
 * so that it starts fast: docs/design/0001. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
	return cli_main(argc, argv);
}

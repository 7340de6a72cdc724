/* carrel -- the command line, `run`, and (later) the launcher. Light on purpose: see
 * docs/design/0001. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
	return cli_main(argc, argv);
}

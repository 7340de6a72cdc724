/* carreld -- the daemon's core: started by `carrel serve`, never by hand. */
#include "base/error.h"

int main(void)
{
	return 125;
}
